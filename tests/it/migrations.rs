//! Migrations: what they leave in the database.

use bson::{Document, doc};
use futures::TryStreamExt;
use orbit::config::ExposeSecret;

use crate::harness::TestApp;

#[tokio::test]
async fn an_index_has_its_fields_in_the_order_of_its_migration() {
    let app = TestApp::start().await;
    let client = mongodb::Client::with_uri_str(app.config().mongo.uri.expose_secret()).await.unwrap();
    let orders = client.database(&app.config().mongo.database).collection::<Document>("orders");
    let indexes: Vec<_> = orders.list_indexes().await.unwrap().try_collect().await.unwrap();
    let fields = |name: &str| {
        let named = |index: &&mongodb::IndexModel| index.options.as_ref().unwrap().name.as_deref() == Some(name);
        indexes.iter().find(named).unwrap().keys.keys().cloned().collect::<Vec<String>>()
    };
    // By name they would stand in another order, and no query could use them.
    assert_eq!(fields("event_newest"), ["eventId", "createdAt", "_id"]);
    assert_eq!(fields("buyer_product"), ["eventId", "userId", "productId"]);
    assert!(app.app().mongo().missing_indexes().await.unwrap().is_empty());
    app.finish().await;
}

#[tokio::test]
async fn an_index_that_is_gone_or_another_under_its_name_is_missing() {
    let app = TestApp::start().await;
    let client = mongodb::Client::with_uri_str(app.config().mongo.uri.expose_secret()).await.unwrap();
    let database = client.database(&app.config().mongo.database);
    let (orders, events) = (database.collection::<Document>("orders"), database.collection::<Document>("events"));
    orders.drop_index("reservation_unique").await.unwrap();
    events.drop_index("seller_oldest").await.unwrap();
    let other = mongodb::options::IndexOptions::builder().name("seller_oldest".to_owned()).build();
    let keys = doc! { "_id": 1, "createdAt": 1, "sellerId": 1 };
    events.create_index(mongodb::IndexModel::builder().keys(keys).options(other).build()).await.unwrap();
    // The same guarantee under another name is as good.
    orders.drop_index("user_newest").await.unwrap();
    let keys = doc! { "userId": 1, "createdAt": -1, "_id": -1 };
    orders.create_index(mongodb::IndexModel::builder().keys(keys).build()).await.unwrap();

    let missing = app.app().mongo().missing_indexes().await.unwrap();

    let mut names: Vec<&str> = missing.iter().map(|index| index.name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["reservation_unique", "seller_oldest"]);
    app.finish().await;
}
