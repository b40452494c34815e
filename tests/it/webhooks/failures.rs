//! Endpoints that fail, in every way that one can.

use orbit::domain::webhook::{DeliveryState, SCHEDULE_S, WebhookState};

use super::receiver::{Behave, Receiver};
use super::{app_with_clock, register, tell_openings};
use crate::harness::eventually;

#[tokio::test]
async fn a_failed_attempt_is_made_again_with_the_same_id_and_a_signature_of_its_own() {
    let (app, clock) = app_with_clock(|_| {}).await;
    let seller = app.approved_seller().await;
    let receiver = Receiver::start(Behave::Answer(200)).await.first(&[Behave::Answer(500)]);
    let webhook = register(&seller, &receiver, &["sale.opened"]).await;
    tell_openings(&seller, 1).await;
    receiver.until(1).await;
    let failed = || async { webhook.deliveries(&app).await[0].log.len() == 1 };
    eventually("the first attempt is recorded", failed).await;
    let delivery = webhook.deliveries(&app).await.remove(0);
    assert_eq!((delivery.state, delivery.log[0].status), (DeliveryState::Pending, Some(500)));
    assert_eq!(delivery.log[0].error.as_deref(), Some("answered 500"));

    clock.advance(6);

    let received = receiver.until(2).await;
    assert_eq!(received[0].id(), received[1].id());
    assert!(received[1].timestamp() >= received[0].timestamp() + 5);
    assert_ne!(received[0].signatures(), received[1].signatures());
    assert!(received.iter().all(|one| one.signed_with(&webhook.secret)));
    let delivered = || async { webhook.deliveries(&app).await[0].state == DeliveryState::Delivered };
    eventually("the second attempt is recorded", delivered).await;
    app.finish().await;
    assert_eq!(receiver.received().len(), 2);
}

#[tokio::test]
async fn after_the_last_attempt_a_delivery_has_failed_and_its_endpoint_is_marked_until_one_succeeds() {
    let (app, clock) = app_with_clock(|_| {}).await;
    let seller = app.approved_seller().await;
    let failures = vec![Behave::Answer(503); SCHEDULE_S.len()];
    let receiver = Receiver::start(Behave::Answer(200)).await.first(&failures);
    let webhook = register(&seller, &receiver, &["sale.opened"]).await;
    tell_openings(&seller, 1).await;

    for attempt in 1..=SCHEDULE_S.len() {
        let recorded = || async { webhook.deliveries(&app).await.first().is_some_and(|one| one.log.len() >= attempt) };
        eventually(&format!("attempt {attempt} is recorded"), recorded).await;
        let next = SCHEDULE_S.get(attempt).copied().unwrap_or(0);
        clock.advance(i64::try_from(next + next / 10 + 1).unwrap());
    }

    let delivery = webhook.deliveries(&app).await.remove(0);
    assert_eq!((delivery.state, delivery.log.len()), (DeliveryState::Failed, 10));
    eventually("the endpoint is marked", || async { webhook.webhook(&app).await.state == WebhookState::Failing }).await;
    clock.advance(1_000_000);
    app.app().webhooks().replay(&webhook.webhook(&app).await, delivery.id).await.unwrap();
    receiver.until(11).await;
    eventually("the mark is gone", || async { webhook.webhook(&app).await.state == WebhookState::Enabled }).await;
    app.finish().await;
    assert_eq!(receiver.received().len(), 11);
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_sent_nothing_more_until_it_is_enabled_again() {
    let (app, _clock) = app_with_clock(|config| config.webhooks.in_flight_per_endpoint_max = 1).await;
    let seller = app.approved_seller().await;
    let receiver = Receiver::start(Behave::Answer(200)).await.first(&[Behave::Answer(410)]);
    let webhook = register(&seller, &receiver, &["sale.opened"]).await;
    tell_openings(&seller, 1).await;
    receiver.until(1).await;
    eventually("it is disabled", || async { webhook.webhook(&app).await.state == WebhookState::Disabled }).await;
    tell_openings(&seller, 1).await;
    let delivery = webhook.deliveries(&app).await.remove(0);
    assert_eq!(delivery.state, DeliveryState::Failed);
    let replay = webhook.path(&format!("/deliveries/{}/replays", delivery.id));
    seller.post(&replay).await.refused(409, "webhook_disabled");

    let shown = seller.put_json(&webhook.path(""), serde_json::json!({ "enabled": true })).await.expect(200);
    assert_eq!(shown["webhook"]["state"], "ENABLED");
    seller.post(&replay).await.expect(202);

    let received = receiver.until(2).await;
    assert_eq!(received[0].id(), received[1].id());
    app.finish().await;
}

#[tokio::test]
async fn an_endpoint_that_redirects_hangs_closes_or_never_ends_is_given_up_in_time() {
    let deadline_ms = 1_000;
    let (app, _clock) = app_with_clock(|config| config.webhooks.attempt_deadline_ms = deadline_ms).await;
    let seller = app.approved_seller().await;
    for (behave, status, expected) in [
        (Behave::Redirect, Some(302), Some("answered 302; redirects are not followed")),
        (Behave::Hang, None, Some("no answer within 1000 ms")),
        (Behave::Close, None, Some("no answer")),
        (Behave::Flood, Some(200), None),
    ] {
        let receiver = Receiver::start(behave).await;
        let webhook = register(&seller, &receiver, &["sale.opened"]).await;
        tell_openings(&seller, 1).await;
        receiver.until(1).await;
        let recorded = || async { webhook.deliveries(&app).await.first().is_some_and(|one| !one.log.is_empty()) };
        eventually("the attempt is recorded", recorded).await;

        let attempt = webhook.deliveries(&app).await.remove(0).log.remove(0);

        assert_eq!(attempt.status, status, "{attempt:?}");
        let error = attempt.error.unwrap_or_default();
        assert!(error.starts_with(expected.unwrap_or_default()), "{behave:?}: {error}");
        assert_eq!(error.is_empty(), expected.is_none(), "{behave:?}: {error}");
        assert!(attempt.took_ms < 5 * deadline_ms, "{behave:?}: {} ms", attempt.took_ms);
        assert!(!error.contains("shop=1"), "an address may hold something secret: {error}");
        assert!(receiver.received().iter().all(|one| one.path != "/elsewhere"));
        seller.delete(&webhook.path("")).await.expect(200);
    }
    app.finish().await;
}

#[tokio::test]
async fn a_slow_endpoint_holds_up_nobody_but_itself() {
    let (app, _clock) = app_with_clock(|config| {
        (config.webhooks.attempt_deadline_ms, config.webhooks.claim_ttl_ms) = (4_000, 60_000);
        (config.webhooks.in_flight_max, config.webhooks.in_flight_per_endpoint_max) = (5, 2);
    })
    .await;
    let seller = app.approved_seller().await;
    let (slow, quick) = (Receiver::start(Behave::Hang).await, Receiver::start(Behave::Answer(200)).await);
    register(&seller, &slow, &["sale.opened"]).await;
    register(&seller, &quick, &["sale.opened"]).await;

    tell_openings(&seller, 8).await;

    quick.until(8).await;
    assert!(slow.received().len() < 8, "the slow one is still at its first ones");
    assert_eq!(slow.open_max(), 2);
    app.finish().await;
}
