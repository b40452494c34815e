//! The stage, set through the public HTTP API alone: whatever is played could have been done by hand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;

use super::actors::{Admin, Buyer, NewProduct, Seller};
use super::amount::Amount;
use super::answers::ProductOnSale;
use super::client::{Api, Credentials};
use super::crowd::{self, finish};
use super::error::{LoadError, Result};
use super::parallel::in_parallel;
use super::payment;
use super::picture;
use super::plan::{Plan, Scenario};
use super::progress::Progress;
use super::voucher::Stock;
use crate::domain::clock::{Clock, SystemClock};

/// Products registered at once: uploads are decoded, and that is bounded on the other side.
const UPLOADS: usize = 5;

/// An event with its people, ready to be sold.
#[derive(Debug)]
pub struct Scene {
    /// Tells this run from any other one: it is in every address and key.
    pub run: String,
    /// Who sells.
    pub seller: Seller,
    /// How to sign in as the seller.
    pub seller_credentials: Credentials,
    /// What is sold.
    pub event: String,
    /// Its products, as buyers see them.
    pub products: Vec<ProductOnSale>,
    /// Units of each product.
    pub units_each: u32,
    /// Who buys.
    pub buyers: Arc<[Buyer]>,
    /// How to sign in as the first buyer.
    pub buyer_credentials: Credentials,
    /// Where the codes come from, if the units are codes.
    pub stock: Option<Stock>,
}

/// A name that no other run has.
fn run_name() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    id[..10].to_owned()
}

/// A password that nobody can guess: the accounts stay when the run is over, and the server may be a shared one.
fn password() -> String {
    format!("Aa1-{}", &uuid::Uuid::new_v4().simple().to_string()[..16])
}

impl Scene {
    /// Sets the stage. The sale is not open yet.
    ///
    /// # Errors
    /// When the service refuses anything, or shows other products than were registered.
    pub async fn set(api: &Api, admin: &Credentials, plan: &Plan, progress: &Progress) -> Result<Self> {
        let (run, password) = (run_name(), password());
        let step = progress.step("admin approves a seller", 1);
        let seller_credentials =
            Credentials { email: format!("seller-{run}@load.example"), password: password.clone() };
        let seller = approved_seller(api, admin, &seller_credentials).await?;
        step.done("");
        let mut stock = None;
        if plan.scenario == Scenario::Voucher {
            let admin = Admin::sign_in(api, admin).await?;
            stock = Some(Stock::fill(admin, seller.user_id(), &run, plan, progress).await?);
        }

        let title = format!("Flash sale {run}");
        let window = (plan.scenario == Scenario::Payment).then_some(payment::WINDOW_S);
        let terms = Terms { payment_window_s: window, voucher: stock.as_ref().map(|stock| stock.product.clone()) };
        let event = stock_event(&seller, &title, (plan.products, plan.units_each()), terms, progress).await?;
        let buyers = crowd::sign_up(api, &run, &password, plan.buyers, plan.workers, progress).await?;
        Ok(Self {
            buyer_credentials: crowd::credentials(&run, &password, 0),
            run,
            seller,
            seller_credentials,
            event,
            products: Vec::new(),
            units_each: plan.units_each(),
            buyers: buyers.into(),
            stock,
        })
    }

    /// Opens the sale, and looks at it as a buyer. Returns how long the opening took.
    ///
    /// # Errors
    /// When the service refuses, or buyers do not see exactly what the seller put there.
    pub async fn open(&mut self, plan: &Plan, progress: &Progress) -> Result<Duration> {
        let step = progress.step("opening the sale", 1);
        let start = Instant::now();
        self.seller.open(&self.event).await?;
        let took = start.elapsed();
        step.done("");
        let buyer = self.buyers.first().ok_or_else(|| LoadError::Plan("there are no buyers".to_owned()))?;
        self.products = buyer.products(&self.event).await?;
        let doing = "listing the products";
        if self.products.len() != plan.products {
            let detail = format!("{} products were registered, buyers see {}", plan.products, self.products.len());
            return Err(LoadError::Contract { doing, detail });
        }
        let units = i64::from(self.units_each);
        if let Some(other) = self.products.iter().find(|product| product.available_stock != units) {
            let detail = format!("{} has {} units, not {units}", other.product_id, other.available_stock);
            return Err(LoadError::Contract { doing, detail });
        }
        Ok(took)
    }

    /// Ends the sale. Returns how long that took, the settlement of every reservation included.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn end(&self, progress: &Progress) -> Result<Duration> {
        let step = progress.step("ending and settling the sale", 1);
        let start = Instant::now();
        self.seller.end(&self.event).await?;
        let took = start.elapsed();
        step.done("");
        Ok(took)
    }
}

/// Makes a seller whom the administrator has approved.
///
/// # Errors
/// When the service refuses.
pub async fn approved_seller(api: &Api, admin: &Credentials, seller: &Credentials) -> Result<Seller> {
    let admin = Admin::sign_in(api, admin).await?;
    let applicant = Seller::sign_up(api, seller).await?;
    applicant.ask_for_approval().await?;
    admin.approve(applicant.user_id()).await?;
    // The first session may not know of the approval.
    Seller::sign_in(api, seller).await
}

/// What is special about an event.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// Seconds in which reservations are to be paid.
    pub payment_window_s: Option<u32>,
    /// What its units are vouchers of.
    pub voucher: Option<String>,
}

/// Creates an event with so many products of so many units, each with a picture. Returns its id.
///
/// # Errors
/// When the service refuses.
pub async fn stock_event(
    seller: &Seller,
    title: &str,
    (products, units): (usize, u32),
    terms: Terms,
    progress: &Progress,
) -> Result<String> {
    let tomorrow = SystemClock.now() + TimeDelta::days(1);
    let banner = picture::jpeg(0, 480, 160)?;
    let event = seller.create_event(title, &tomorrow.to_rfc3339(), &banner, terms.payment_window_s).await?;
    let step = Arc::new(progress.step(format!("registering {products} products"), products));
    let shared = (seller.clone(), event.clone(), terms.voucher, Arc::clone(&step));
    in_parallel(products, UPLOADS, move |number| {
        let (seller, event, voucher, step) = shared.clone();
        async move {
            let product = NewProduct {
                title: format!("Limited edition no. {}", number + 1),
                price: price(number),
                units,
                picture: picture::jpeg(number, 240, 240)?,
                voucher,
            };
            seller.register_product(&event, &product).await?;
            step.inc();
            Ok(())
        }
    })
    .await?;
    finish(step, "");
    Ok(event)
}

/// Prices differ, and have a fraction, so that a wrong or a rounded one shows.
fn price(number: usize) -> Amount {
    Amount::new(999 + 100 * u32::try_from(number % 1_000).unwrap_or(0), 99)
}
