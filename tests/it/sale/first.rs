//! A whole sale.

use crate::harness::TestApp;

#[tokio::test]
async fn a_whole_sale_from_opening_to_its_last_order() {
    let app = TestApp::start().await;
    let sale = app.live_sale(2, 1).await;
    let (first, second) = (app.buyer().await, app.buyer().await);

    let reserved = first.post(&sale.purchase(0)).await.expect(201);
    assert_eq!(reserved["price"], 199.99);
    assert_eq!(reserved["status"], "CONFIRMED");
    first.post(&sale.purchase(0)).await.refused(409, "already_booked");
    second.post(&sale.purchase(0)).await.refused(409, "sold_out");
    assert_eq!(sale.available(&second, 0).await, 0);
    assert_eq!(sale.available(&second, 1).await, 1);
    sale.assert_sound(app.app()).await;

    let ended = sale.control("End").await.expect(200);
    assert_eq!(ended["message"], "sale ended \u{2014} all orders synced to database");
    let orders = sale.orders().await;
    assert_eq!(orders.len(), 1);
    assert_eq!(orders[0]["reservationId"], reserved["reservationId"]);
    sale.assert_sound(app.app()).await;
    app.finish().await;
}
