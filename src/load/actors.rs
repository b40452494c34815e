//! Who is played: an administrator, a seller, buyers. One method for each thing that they do.

use reqwest::multipart::{Form, Part};
use reqwest::{Method, Request, RequestBuilder};
use serde_json::json;

use super::amount::Amount;
use super::answers::{
    Analytics, AnalyticsBody, AskedToPay, Availability, Codes, Entered, EventCreated, ImportState, Order, Orders,
    PaymentBody, PaymentState, Pending, ProductOnSale, Products, Purchased,
};
use super::client::{Api, Credentials, Session};
use super::error::{ApiError, LoadError, Result};
use super::voucher::DENOMINATION;

/// Reviews sellers.
#[derive(Debug)]
pub struct Admin(Session);

impl Admin {
    /// Signs in.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn sign_in(api: &Api, who: &Credentials) -> Result<Self> {
        api.sign_in(who).await.map(Self)
    }

    /// Approves the request of this seller, wherever it stands in the list.
    ///
    /// # Errors
    /// When there is no such request, or the service refuses.
    pub async fn approve(&self, seller_id: &str) -> Result<()> {
        let doing = "looking for the seller's verification";
        let path = "/api/admin/verifications/pending";
        let of_seller = |seller: &str| seller == seller_id;
        let pending = self
            .0
            .list::<Pending>(doing, path, |seen| seen.iter().any(|request| of_seller(&request.seller_id)))
            .await?;
        let request = pending.into_iter().find(|request| of_seller(&request.seller_id)).ok_or_else(|| {
            LoadError::Contract { doing, detail: format!("seller {seller_id} has no pending request") }
        })?;
        let path = format!("/api/admin/verifications/{}/approve", request.id);
        Ok(self.0.tell("approving the seller", || self.0.request(Method::POST, &path)).await?)
    }

    /// Enters who issues vouchers, of what, and for whom they are kept: a client for which `member` may order. Returns the
    /// ids of product and client.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn enter_vouchers(
        &self,
        names: &VoucherNames,
        member: &str,
        denomination: &str,
    ) -> Result<(String, String), ApiError> {
        let vendor = self.enter("vendors", json!({ "name": names.vendor })).await?;
        let client = self.enter("clients", json!({ "name": names.client, "members": [member] })).await?;
        let product = json!({
            "name": names.product, "currency": "INR", "denominations": [denomination], "vendors": [vendor],
        });
        Ok((self.enter("products", product).await?, client))
    }

    async fn enter(&self, what: &str, body: serde_json::Value) -> Result<String, ApiError> {
        let path = format!("/api/admin/vouchers/{what}");
        let entered: Entered =
            self.0.ask("entering vouchers", || self.0.request(Method::POST, &path).json(&body)).await?;
        Ok(entered.id)
    }

    /// Uploads a spreadsheet of vouchers, all or nothing. Returns the import's id.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn import_vouchers(&self, workbook: Vec<u8>) -> Result<String, ApiError> {
        let make = || {
            let file = Part::bytes(workbook.clone()).file_name("codes.xlsx");
            let form = Form::new().text("mode", "all").part("file", file);
            self.0.request(Method::POST, "/api/admin/vouchers/imports").multipart(form)
        };
        let entered: Entered = self.0.ask("importing vouchers", make).await?;
        Ok(entered.id)
    }

    /// How far an import is.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn import(&self, id: &str) -> Result<ImportState, ApiError> {
        self.0.get("asking about an import", &format!("/api/admin/vouchers/imports/{id}")).await
    }

    /// Vouchers of a product that are kept for a client, and can be had.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn vouchers_of_client(&self, product: &str, client: &str) -> Result<u64, ApiError> {
        let path = format!("/api/admin/vouchers/products/{product}/availability");
        let kept: Availability = self.0.get("counting vouchers", &path).await?;
        Ok(kept.pools.iter().filter(|pool| pool.client_id.as_deref() == Some(client)).map(|pool| pool.database).sum())
    }
}

/// How things of vouchers are called.
#[derive(Debug)]
pub struct VoucherNames {
    /// Who issues them.
    pub vendor: String,
    /// For whom they are kept.
    pub client: String,
    /// What they are of.
    pub product: String,
}

/// What a seller puts on sale.
#[derive(Debug)]
pub struct NewProduct {
    /// Its name.
    pub title: String,
    /// Of one unit.
    pub price: Amount,
    /// Units.
    pub units: u32,
    /// A JPEG.
    pub picture: Vec<u8>,
    /// What its units are vouchers of, if they are.
    pub voucher: Option<String>,
}

/// Sells.
#[derive(Debug, Clone)]
pub struct Seller(Session);

impl Seller {
    /// Makes the account.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn sign_up(api: &Api, who: &Credentials) -> Result<Self> {
        api.sign_up(who, "seller").await.map(Self)
    }

    /// Signs in, for a session that knows of an approval.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn sign_in(api: &Api, who: &Credentials) -> Result<Self> {
        api.sign_in(who).await.map(Self)
    }

    /// The account.
    #[must_use]
    pub fn user_id(&self) -> &str {
        self.0.user_id()
    }

    /// Asks to be approved.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn ask_for_approval(&self) -> Result<(), ApiError> {
        let body = json!({
            "companyName": "Load Test Traders",
            "gstin": "27AAPFU0939F1ZV",
            "accountHolderName": "Seller Test",
            "accountNumber": "50100123456789",
            "ifscCode": "HDFC0001234",
            "bankName": "Example Bank",
        });
        self.0.tell("asking for approval", || self.0.request(Method::POST, "/api/seller/verify").json(&body)).await
    }

    /// Creates an event and returns its id. With a payment window its reservations are to be paid.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn create_event(
        &self,
        title: &str,
        scheduled_at: &str,
        banner: &[u8],
        payment_window_s: Option<u32>,
    ) -> Result<String, ApiError> {
        let created: EventCreated = self
            .0
            .ask("creating the event", || {
                let mut form = Form::new();
                if let Some(seconds) = payment_window_s {
                    form = form.text("paymentWindow", seconds.to_string());
                }
                let form = form
                    .text("title", title.to_owned())
                    .text("description", "A flash sale, played from end to end.")
                    .text("scheduledAt", scheduled_at.to_owned())
                    .part("imageBanner", picture(banner, "banner.jpg"));
                self.0.request(Method::POST, "/api/seller/events/create").multipart(form)
            })
            .await?;
        Ok(created.event_id)
    }

    /// Adds a product to an event.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn register_product(&self, event: &str, product: &NewProduct) -> Result<(), ApiError> {
        let path = format!("/api/seller/events/{event}/registerProducts");
        let make = || {
            let mut form = Form::new();
            if let Some(voucher) = &product.voucher {
                form = form.text("voucherProductId", voucher.clone()).text("voucherDenomination", DENOMINATION);
            }
            let form = form
                .text("title", product.title.clone())
                .text("description", "One of few. First come, first served.")
                .text("price", product.price.to_string())
                .text("currency", "INR")
                .text("frequency", product.units.to_string())
                .part("image", picture(&product.picture, "product.jpg"));
            self.0.request(Method::POST, &path).multipart(form)
        };
        self.0.tell("registering a product", make).await
    }

    /// Opens the sale.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn open(&self, event: &str) -> Result<(), ApiError> {
        self.0.tell("opening the sale", || self.lifecycle(event, "Live")).await
    }

    /// Ends the sale; it is settled when this returns.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn end(&self, event: &str) -> Result<(), ApiError> {
        self.0.tell("ending the sale", || self.lifecycle(event, "End")).await
    }

    fn lifecycle(&self, event: &str, action: &str) -> RequestBuilder {
        // Openings and endings take as long as the sale is large.
        let path = format!("/api/seller/events/{event}/{action}");
        self.0.request(Method::POST, &path).timeout(std::time::Duration::from_secs(300))
    }

    /// Every order of the event.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn orders(&self, event: &str) -> Result<Vec<Order>, ApiError> {
        let path = format!("/api/seller/events/booking/fetch/{event}");
        self.0.list::<Orders>("reading the orders", &path, |_| false).await
    }

    /// The event's totals.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn analytics(&self, event: &str) -> Result<Analytics, ApiError> {
        let path = format!("/api/seller/events/booking/analytics/{event}");
        Ok(self.0.get::<AnalyticsBody>("reading the analytics", &path).await?.analytics)
    }
}

/// A file part as a script would send it, with no image type: what counts is what is in it.
fn picture(bytes: &[u8], name: &'static str) -> Part {
    let part = Part::bytes(bytes.to_vec()).file_name(name);
    part.mime_str("application/octet-stream").unwrap_or_else(|_| Part::bytes(bytes.to_vec()).file_name(name))
}

/// Buys.
#[derive(Debug, Clone)]
pub struct Buyer(Session);

impl Buyer {
    /// Makes the account.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn sign_up(api: &Api, who: &Credentials) -> Result<Self> {
        api.sign_up(who, "buyer").await.map(Self)
    }

    /// The account.
    #[must_use]
    pub fn user_id(&self) -> &str {
        self.0.user_id()
    }

    /// What proves the session.
    #[must_use]
    pub fn token(&self) -> &str {
        self.0.token()
    }

    /// Asks whether the session is good.
    ///
    /// # Errors
    /// When it is not, or the service does not answer.
    pub async fn check_session(&self) -> Result<(), ApiError> {
        self.0.tell("checking a session", || self.0.request(Method::GET, "/api/auth/check")).await
    }

    /// The event's products.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn products(&self, event: &str) -> Result<Vec<ProductOnSale>, ApiError> {
        let path = format!("/api/buyer/event/{event}");
        self.0.list::<Products>("listing the products", &path, |_| false).await
    }

    /// Makes a purchase's request, ahead of time. The same `key` again asks what became of the first one.
    ///
    /// # Errors
    /// When an id cannot stand in an address.
    pub fn purchase_request(&self, event: &str, product: &str, key: &str) -> Result<Request, ApiError> {
        let path = format!("/api/buyer/event/{event}/purchase/{product}");
        let request = self.0.request(Method::POST, &path).header("idempotency-key", key);
        request.build().map_err(|error| ApiError::no_answer("buying", &error))
    }

    /// Asks to pay for a reservation, and returns where.
    ///
    /// # Errors
    /// When the service refuses, or does not take money by a page.
    pub async fn ask_to_pay(&self, event: &str, product: &str) -> Result<String> {
        const DOING: &str = "asking to pay";
        let path = format!("/api/buyer/event/{event}/reservation/{product}/pay");
        let asked: AskedToPay = self.0.ask(DOING, || self.0.request(Method::POST, &path)).await?;
        let none = || LoadError::Contract { doing: DOING, detail: "there is no page to pay on".to_owned() };
        asked.pay_url.ok_or_else(none)
    }

    /// Presses the button of the page: a path, or a whole address.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn press_pay(&self, page: &str) -> Result<(), ApiError> {
        let path = page.find("/api/").map_or(page, |at| &page[at..]);
        self.0.tell("paying", || self.0.request(Method::POST, path)).await
    }

    /// Cancels a reservation.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn cancel(&self, event: &str, product: &str) -> Result<(), ApiError> {
        let path = format!("/api/buyer/event/{event}/reservation/{product}/cancel");
        self.0.tell("cancelling", || self.0.request(Method::POST, &path)).await
    }

    /// What became of the money for a reservation.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn payment(&self, event: &str, product: &str) -> Result<PaymentState, ApiError> {
        let path = format!("/api/buyer/event/{event}/reservation/{product}/payment");
        Ok(self.0.get::<PaymentBody>("asking about a payment", &path).await?.payment)
    }

    /// The codes of a reservation.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn codes(&self, event: &str, product: &str) -> Result<Vec<String>, ApiError> {
        let path = format!("/api/buyer/event/{event}/reservation/{product}/codes");
        let shown: Codes = self.0.get("reading codes", &path).await?;
        Ok(shown.codes.into_iter().map(|code| code.code).collect())
    }

    /// Sends a purchase, once.
    ///
    /// # Errors
    /// A refusal, too, is an [`ApiError`]: see [`super::attempt::Outcome`].
    pub async fn purchase(&self, request: Request) -> Result<Purchased, ApiError> {
        self.0.api().call("buying", request).await
    }
}
