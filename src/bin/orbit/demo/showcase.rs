//! After the sale: a second one that stays open, and what a visitor needs to look around.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use orbit::load::client::Credentials;
use orbit::load::error::LoadError;
use orbit::load::play::Played;
use orbit::load::progress::Progress;
use orbit::load::scene::{Scene, Terms, stock_event};

const PRODUCTS: usize = 3;
const UNITS: u32 = 100;

/// An open sale and one of its products.
struct OpenSale {
    event: String,
    product: String,
}

/// Opens a small sale for the visitor and says how to get in.
pub(super) async fn open(
    played: &Played,
    base: &str,
    metrics: Option<SocketAddr>,
    admin: &Credentials,
    jar: &Path,
    progress: &Progress,
) {
    progress.say("\nA second sale, which stays open for you:");
    let sale = match second_sale(&played.scene, progress).await {
        Ok(sale) => Some(sale),
        Err(error) => {
            progress.say(&format!("  it could not be opened: {error}"));
            None
        }
    };
    progress.say(&invitation(&played.scene, base, metrics, admin, jar, sale.as_ref()));
}

async fn second_sale(scene: &Scene, progress: &Progress) -> Result<OpenSale, LoadError> {
    let title = format!("Open house {}", scene.run);
    let event = stock_event(&scene.seller, &title, (PRODUCTS, UNITS), Terms::default(), progress).await?;
    scene.seller.open(&event).await?;
    let products = match scene.buyers.first() {
        Some(buyer) => buyer.products(&event).await?,
        None => Vec::new(),
    };
    let product = products.into_iter().next().map(|product| product.product_id);
    let product = product
        .ok_or_else(|| LoadError::Contract { doing: "listing the products", detail: "there are none".to_owned() })?;
    Ok(OpenSale { event, product })
}

fn invitation(
    scene: &Scene,
    base: &str,
    metrics: Option<SocketAddr>,
    admin: &Credentials,
    jar: &Path,
    sale: Option<&OpenSale>,
) -> String {
    let mut text = format!("\nOrbit is up: {base}\n  documentation  {base}/docs\n");
    // Writing to a String does not fail.
    if let Some(metrics) = metrics {
        let _ = writeln!(text, "  metrics        http://{metrics}/metrics");
    }
    let _ = writeln!(text, "\nAccounts to sign in with:");
    for (role, who) in [("admin", admin), ("seller", &scene.seller_credentials), ("buyer", &scene.buyer_credentials)] {
        let _ = writeln!(text, "  {role:<8} {:<36} {}", who.email, who.password);
    }
    if let Some(OpenSale { event, product }) = sale {
        let (buyer, jar) = (&scene.buyer_credentials, jar.display());
        let _ = write!(
            text,
            "\nBuy something:\n  curl -s -c {jar} -H 'content-type: application/json' \\\n    \
             -d '{{\"emailId\":\"{}\",\"password\":\"{}\"}}' {base}/api/auth/signin\n  \
             curl -s -b {jar} -X POST {base}/api/buyer/event/{event}/purchase/{product}\n",
            buyer.email, buyer.password
        );
    }
    text + "\nCtrl-C stops everything."
}
