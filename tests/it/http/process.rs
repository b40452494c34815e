//! The process: how it stops, why it does not start, and the commands beside it.

use std::process::{Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use orbit::config::{Config, Durability};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::read_until;
use crate::harness::process::{OrbitProcess, environment, orbit, text};
use crate::harness::{Actor, PASSWORD, TestApp, config, eventually, pictures};

#[tokio::test]
async fn on_sigterm_a_running_upload_is_answered_and_nobody_new_is_let_in() {
    let config = config().await;
    let process = OrbitProcess::start(&config).await;
    let seller = Actor::new(process.url.clone()).sign_up("seller").await;
    let address = process.url.strip_prefix("http://").unwrap().to_owned();

    let mut body = Vec::new();
    for (name, value) in
        [("title", "Late"), ("description", "Sent while stopping"), ("scheduledAt", "2099-01-01T00:00:00Z")]
    {
        body.extend(format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").bytes());
    }
    body.extend(b"--b\r\nContent-Disposition: form-data; name=\"imageBanner\"; filename=\"a.jpg\"\r\n\r\n");
    body.extend(pictures::jpeg(64, 64));
    body.extend(b"\r\n--b--\r\n");
    let head = format!(
        "POST /api/seller/events/create HTTP/1.1\r\nHost: x\r\nCookie: token={}\r\n\
         Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        seller.token.clone().unwrap(),
        body.len()
    );
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    // The handler asks for the body: from here on the request runs.
    let asked = read_until(&mut stream, "\r\n\r\n").await;
    assert!(asked.starts_with("HTTP/1.1 100"), "{asked}");
    let (early, late) = body.split_at(body.len() / 2);
    stream.write_all(early).await.unwrap();

    kill(Pid::from_raw(i32::try_from(process.pid()).unwrap()), Signal::SIGTERM).unwrap();
    eventually("the process lets nobody in", || async { TcpStream::connect(&address).await.is_err() }).await;
    stream.write_all(late).await.unwrap();
    let said = read_until(&mut stream, "eventId").await;
    assert!(said.starts_with("HTTP/1.1 201"), "{said}");
    assert!(process.terminate().await, "the process did not finish what it had");
}

#[tokio::test]
async fn on_sigterm_a_running_opening_is_finished() {
    let app = TestApp::start().await;
    let seller = app.approved_seller().await;
    let event = seller.create_event("Spring drop").await;
    for number in 0..20 {
        seller.add_product(&event, &format!("Product {number}"), "10", 1).await;
    }
    let process = OrbitProcess::start(app.config()).await;
    let there = seller.at(process.url.clone());
    let path = format!("/api/seller/events/{event}/Live");
    let (opened, finished) = tokio::join!(Actor::try_send(there.request(reqwest::Method::POST, &path)), async {
        let status = format!("/api/seller/events/get/{event}");
        eventually("the opening runs", || async {
            seller.get(&status).await.expect(200)["event"]["salePhase"] != "DRAFT"
        })
        .await;
        process.terminate().await
    });
    opened.unwrap().expect(200);
    assert!(finished);
    let buyer = app.buyer().await;
    let page = buyer.get(&format!("/api/buyer/event/{event}")).await.expect(200);
    assert_eq!(page["products"].as_array().unwrap().len(), 20);
    app.finish().await;
}

async fn serve_with(change: impl FnOnce(&mut Vec<(String, String)>)) -> Output {
    let config = Config::with_layer(orbit::config::TEST).unwrap();
    let mut variables = environment(&config, 0);
    change(&mut variables);
    let running = orbit().arg("serve").envs(variables).output();
    tokio::time::timeout(std::time::Duration::from_secs(30), running).await.expect("it does not end").unwrap()
}

#[tokio::test]
async fn a_bad_configuration_stops_the_start_with_a_sentence_for_each_setting() {
    let output = orbit().arg("serve").output().await.unwrap();
    assert!(!output.status.success());
    let said = text(&output);
    for setting in ["auth.jwt_secret", "accounts.data_key", "openssl rand", "ORBIT__AUTH__JWT_SECRET"] {
        assert!(said.contains(setting), "{setting}: {said}");
    }
    for (variable, value, setting) in [
        ("ORBIT__AUTH__JWT_SECRET", "short-secret", "auth.jwt_secret"),
        ("ORBIT__SERVER__PORT", "many", "server.port"),
        ("ORBIT__SERVER__PORT", "70000", "server.port"),
        ("ORBIT__LIVE__DURABILITY", "perhaps", "live.durability"),
        ("ORBIT__LIVE__PERSISTENCE", "aof", "persistence"),
        ("ORBIT__LIVE__URL", "localhost:6379", "live.url"),
        ("ORBIT__MONGO__URI", "postgres://localhost", "mongo.uri"),
        ("ORBIT__SALE__WORKERS", "0", "sale.workers"),
        ("ORBIT__MEDIA__BACKEND", "s3", "media.s3.bucket"),
        ("ORBIT__SERVER__PROT", "1", "prot"),
    ] {
        let output = serve_with(|variables| {
            variables.retain(|(name, _)| name != variable);
            variables.push((variable.to_owned(), value.to_owned()));
        })
        .await;
        let said = text(&output);
        assert!(!output.status.success(), "{variable}={value} was accepted");
        assert!(said.contains(setting), "{variable}={value}: {said}");
        assert!(!said.contains("short-secret"), "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[tokio::test]
async fn a_missing_configuration_file_is_named() {
    let output = orbit().args(["serve", "--config", "/nowhere/orbit.toml"]).output().await.unwrap();
    assert!(!output.status.success());
    assert!(text(&output).contains("/nowhere/orbit.toml"), "{}", text(&output));
}

#[tokio::test]
async fn stores_that_do_not_answer_stop_the_start_without_showing_a_password() {
    let output = serve_with(|variables| {
        variables.retain(|(name, _)| name != "ORBIT__LIVE__URL");
        variables.push(("ORBIT__LIVE__URL".to_owned(), "redis://:hunter2hunter2@127.0.0.1:1/0".to_owned()));
    })
    .await;
    assert!(!output.status.success());
    let said = text(&output);
    assert!(!said.is_empty() && !said.contains("hunter2hunter2") && !said.contains("panicked"), "{said}");
}

#[tokio::test]
async fn an_administrator_is_made_on_the_command_line_once() {
    let app = TestApp::start().await;
    let create = async |email: &str, password: &str| {
        let mut command = orbit();
        command.args(["admin", "create", "--email", email]);
        command.envs(environment(app.config(), 0)).env("ORBIT_ADMIN_PASSWORD", password).output().await.unwrap()
    };
    let output = create("Root@Orbit.example", PASSWORD).await;
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("root@orbit.example"), "{}", text(&output));
    let admin = app.anonymous().sign_in("root@orbit.example", PASSWORD).await;
    admin.get("/api/admin/verifications/pending").await.expect(200);

    let output = create("root@orbit.example", "Password124").await;
    assert!(!output.status.success());
    assert!(text(&output).contains("Email already exists"), "{}", text(&output));
    app.anonymous().sign_in("root@orbit.example", PASSWORD).await;
    for (email, password) in [("no address", PASSWORD), ("other@orbit.example", "short")] {
        let output = create(email, password).await;
        assert!(!output.status.success());
        assert!(!text(&output).contains(password), "{}", text(&output));
    }
    app.finish().await;
}

#[tokio::test]
async fn the_health_check_command_agrees_with_the_service() {
    let app = TestApp::start().await;
    let url = format!("{}/health/ready", app.url());
    let output = orbit().args(["healthcheck", "--url", &url]).output().await.unwrap();
    assert!(output.status.success(), "{}", text(&output));
    app.finish().await;
    let output = orbit().args(["healthcheck", "--url", &url]).output().await.unwrap();
    assert!(!output.status.success());
    assert!(text(&output).contains("does not answer"), "{}", text(&output));
}

#[tokio::test]
async fn a_start_says_what_a_crash_can_lose_and_whether_the_server_is_worse() {
    let mut config = config().await;
    for (level, kept) in [(Durability::Everysec, true), (Durability::Always, false)] {
        config.live.durability = level;
        let mut variables = environment(&config, 0);
        variables.retain(|(name, _)| name != "ORBIT__LOG__FILTER");
        let mut process = orbit().arg("serve").envs(variables).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            let line: Value = serde_json::from_str(&line).unwrap();
            let serving = line["message"] == "serving";
            said.push(line);
            if serving {
                break;
            }
        }
        process.kill().await.unwrap();
        let durability = said.iter().find(|line| line["message"] == "durability").unwrap();
        assert_eq!((&durability["level"], &durability["at_risk"]), (&json!(level.as_str()), &json!(level.at_risk())));
        let broken = said.iter().find(|line| line["message"].as_str().unwrap().starts_with("durability is not kept"));
        assert_eq!(broken.is_none(), kept, "{said:?}");
        assert!(broken.is_none_or(|line| line["problem"].as_str().unwrap().contains("appendfsync")), "{said:?}");
    }
}
