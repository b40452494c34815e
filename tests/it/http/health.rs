//! Health, metrics, and the documentation.

use serde_json::json;

use crate::harness::{Actor, TestApp, config, eventually, own_redis};

#[tokio::test]
async fn a_process_that_can_work_says_so() {
    let app = TestApp::start().await;
    assert_eq!(app.anonymous().get("/health/live").await.expect(200), json!({ "status": "live" }));
    let ready = app.anonymous().get("/health/ready").await.expect(200);
    let expected = json!({
        "status": "ready", "liveStore": "ok", "database": "ok", "stopping": false,
        "durability": "none", "durabilityKept": true,
    });
    assert_eq!(ready, expected);
    app.finish().await;
}

#[tokio::test]
async fn without_redis_it_lives_but_is_not_ready_and_comes_back_by_itself() {
    let mut redis = own_redis().await;
    let mut config = config().await;
    config.live.url = redis.url().into();
    let app = TestApp::with(config).await;
    app.anonymous().get("/health/ready").await.expect(200);

    redis.kill().await;
    let reply = app.anonymous().get("/health/ready").await;
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert_eq!((&reply.body["status"], &reply.body["liveStore"]), (&json!("not_ready"), &json!("unavailable")));
    assert_eq!(reply.body["database"], "ok");
    assert_eq!(reply.body["durabilityKept"], false);
    app.anonymous().get("/health/live").await.expect(200);
    // What needs no Redis works.
    app.buyer().await.get("/api/auth/check").await.expect(200);

    redis.restart().await.unwrap();
    eventually("ready again", || async { app.anonymous().get("/health/ready").await.status == 200 }).await;
    app.finish().await;
}

#[tokio::test]
async fn metrics_have_a_listener_of_their_own_and_count_purchases() {
    let app = TestApp::start().await;
    let sale = app.live_sale(1, 1).await;
    app.buyer().await.post(&sale.purchase(0)).await.expect(201);
    let metrics = Actor::new(format!("http://{}", app.running.metrics_address.unwrap()));
    let page = metrics.get("/metrics").await.expect(200);
    let page = page.as_str().unwrap();
    let counted = page.lines().find(|line| line.starts_with("orbit_purchases_total{outcome=\"reserved\"}"));
    let count: u64 = counted.unwrap_or_else(|| panic!("{page}")).rsplit(' ').next().unwrap().parse().unwrap();
    assert!(count >= 1);
    assert!(page.contains("orbit_http_requests_total{class=\"2xx\"}"), "{page}");

    assert_eq!(metrics.get("/api/auth/check").await.status, 404);
    assert_eq!(metrics.get("/").await.status, 404);
    app.anonymous().get("/metrics").await.refused(404, "route_not_found");
    app.finish().await;
}

#[tokio::test]
async fn the_documentation_is_served_and_fetches_nothing_from_elsewhere() {
    let app = TestApp::start().await;
    let page = app.anonymous().get("/docs").await;
    assert!(page.headers["content-type"].starts_with("text/html"), "{:?}", page.headers);
    assert!(page.headers["content-security-policy"].contains("default-src 'none'"));
    let html = page.expect(200);
    let html = html.as_str().unwrap();
    assert!(html.contains("openapi.json"));
    for outside in ["src=\"http", "href=\"http", "src='http", "@import", "//cdn"] {
        assert!(!html.contains(outside), "{outside}");
    }
    let document = app.anonymous().get("/openapi.json").await.expect(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
    assert_eq!(document, serde_json::to_value(orbit::http::router::document()).unwrap());
    app.finish().await;
}
