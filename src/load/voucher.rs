//! Vouchers: what is sold are codes, which were imported from a spreadsheet before. Whoever has got one reads it, twice.
//!
//! The codes themselves are in no report: they are compared, and counted.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rust_xlsxwriter::{Format, Workbook};
use tokio::time::{Instant, sleep};

use super::actors::{Admin, Buyer, VoucherNames};
use super::attempt::{Attempt, Outcome};
use super::crowd::finish;
use super::error::{LoadError, Result};
use super::parallel::in_parallel;
use super::plan::Plan;
use super::progress::Progress;
use super::scene::Scene;

/// What one voucher is worth, as it stands in the spreadsheet.
pub const DENOMINATION: &str = "500.00";
/// Codes that are imported beside those that are put on sale: none of them may be sold.
const SPARE: usize = 10;
/// A spreadsheet is in the inventory within this time.
const IMPORTED_WITHIN: Duration = Duration::from_secs(120);
/// What was not sold is back within this time after the end.
const BACK_WITHIN: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The inventory that is sold from.
#[derive(Debug)]
pub struct Stock {
    admin: Admin,
    /// What the codes are vouchers of.
    pub product: String,
    client: String,
    imported: HashSet<String>,
}

/// What a buyer was shown.
#[derive(Debug, Clone)]
pub struct Look {
    /// The reservation.
    pub reservation: String,
    /// The codes, as they were shown first.
    pub codes: Vec<String>,
    /// Whether they were the same when the buyer looked again.
    pub same_again: bool,
    /// What the service refused meanwhile, if it did.
    pub problem: Option<String>,
}

/// What is known of the codes when the sale is over.
#[derive(Debug)]
pub struct CodesSeen {
    /// Of each buyer who has got one.
    pub looks: Vec<Look>,
    /// The codes in the spreadsheet.
    pub imported: HashSet<String>,
    /// Codes that can be sold again after the end.
    pub back: u64,
}

impl Stock {
    /// The administrator enters who issues and who sells, and imports a spreadsheet with enough codes for the plan.
    ///
    /// # Errors
    /// When the service refuses anything, or a row of the spreadsheet.
    pub async fn fill(admin: Admin, seller: &str, run: &str, plan: &Plan, progress: &Progress) -> Result<Self> {
        let names = VoucherNames {
            vendor: format!("Vendor {run}"),
            client: format!("Shop {run}"),
            product: format!("Gift card {run}"),
        };
        let (product, client) = admin.enter_vouchers(&names, seller, DENOMINATION).await?;
        let count = plan.products * plan.units as usize + SPARE;
        let step = progress.step(format!("importing a spreadsheet of {count} codes"), 1);
        let codes: Vec<String> = (0..count).map(|_| uuid::Uuid::new_v4().simple().to_string()).collect();
        let import = admin.import_vouchers(spreadsheet(&names, &codes)?).await?;
        let deadline = Instant::now() + IMPORTED_WITHIN;
        loop {
            let import = admin.import(&import).await?;
            match import.state.as_str() {
                "DONE" if import.added == count as u64 => break,
                "READING" | "COMMITTING" if Instant::now() < deadline => sleep(LOOK_EVERY).await,
                state => {
                    let detail = format!("{state}, {} of {count} rows added: {:?}", import.added, import.reason);
                    return Err(LoadError::Contract { doing: "importing vouchers", detail });
                }
            }
        }
        step.done("");
        Ok(Self { admin, product, client, imported: codes.into_iter().collect() })
    }

    /// Everybody who has got one looks at the code, and looks again.
    ///
    /// # Errors
    /// When a task breaks off; what the service refuses is in the looks.
    pub(super) async fn look(
        scene: &Arc<Scene>,
        plan: &Plan,
        attempts: &[Attempt],
        progress: &Progress,
    ) -> Result<Vec<Look>> {
        let got = |attempt: &Attempt| match &attempt.outcome {
            Outcome::Accepted { reservation_id, .. } => Some((reservation_id.clone(), attempt.buyer, attempt.product)),
            _ => None,
        };
        let got: Arc<[_]> = attempts.iter().filter_map(got).collect();
        let step = Arc::new(progress.step(format!("{} buyers read their codes", got.len()), got.len()));
        let (scene, told) = (Arc::clone(scene), Arc::clone(&step));
        let looks = in_parallel(got.len(), plan.workers, move |number| {
            let (scene, got, step) = (Arc::clone(&scene), Arc::clone(&got), Arc::clone(&told));
            async move {
                let (reservation, buyer, product) = got[number].clone();
                let (buyer, product) = (&scene.buyers[buyer], &scene.products[product].product_id);
                let look = look_twice(buyer, &scene.event, product, reservation).await;
                step.inc();
                Ok(look)
            }
        })
        .await?;
        finish(step, "");
        Ok(looks)
    }

    /// What is known in the end: looks until everything that was not sold can be sold again, or for as long as that may take.
    ///
    /// # Errors
    /// When the service refuses.
    pub(super) async fn count(self, looks: Vec<Look>, progress: &Progress) -> Result<CodesSeen> {
        let step = progress.step("counting the codes that go back", 1);
        let shown: usize = looks.iter().map(|look| look.codes.len()).sum();
        let (wanted, deadline) = (self.imported.len().saturating_sub(shown) as u64, Instant::now() + BACK_WITHIN);
        let back = loop {
            let back = self.admin.vouchers_of_client(&self.product, &self.client).await?;
            if back == wanted || Instant::now() >= deadline {
                break back;
            }
            sleep(LOOK_EVERY).await;
        };
        step.done("");
        Ok(CodesSeen { looks, imported: self.imported, back })
    }
}

async fn look_twice(buyer: &Buyer, event: &str, product: &str, reservation: String) -> Look {
    let mut look = Look { reservation, codes: Vec::new(), same_again: false, problem: None };
    let looks = async { Ok::<_, LoadError>((buyer.codes(event, product).await?, buyer.codes(event, product).await?)) };
    match looks.await {
        Ok((first, again)) => {
            look.same_again = first == again;
            look.codes = first;
        }
        Err(error) => look.problem = Some(error.to_string()),
    }
    look
}

/// A workbook as the template has it. Codes are texts.
fn spreadsheet(names: &VoucherNames, codes: &[String]) -> Result<Vec<u8>> {
    let write = || {
        let (mut book, text) = (Workbook::new(), Format::new().set_num_format("@"));
        let sheet = book.add_worksheet();
        let titles = ["Product", "Denomination", "Vendor", "Code", "Tagged Client Name"];
        for (column, title) in (0..).zip(titles) {
            sheet.write_string(0, column, title)?;
        }
        for (row, code) in (1..).zip(codes) {
            let cells = [names.product.as_str(), DENOMINATION, &names.vendor, code, &names.client];
            for (column, cell) in (0..).zip(cells) {
                sheet.write_string_with_format(row, column, cell, &text)?;
            }
        }
        book.save_to_buffer()
    };
    write().map_err(|error| LoadError::Plan(format!("the spreadsheet cannot be written: {error}")))
}
