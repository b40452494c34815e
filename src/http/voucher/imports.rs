//! Spreadsheets of vouchers, uploaded by administrators.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use futures::stream;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::domain::voucher_import::VoucherImport;
use crate::error::Error;
use crate::http::extract::{Admin, Form, Paged, Path, next_cursor, path_id};
use crate::http::openapi::PageQuery;
use crate::http::problem::{Answer, ProblemBody};
use crate::vouchers::{ReportAt, Upload, import};

const NO_IMPORT: &str = "import not found";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

/// A file with vouchers.
#[derive(ToSchema)]
#[expect(dead_code, reason = "for the document: the form is read field by field")]
pub(in crate::http) struct ImportForm {
    /// XLSX or CSV, as the template has it.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// `all` (one wrong row, and nothing comes in; the default) or `valid` (wrong rows are left out).
    mode: Option<String>,
}

/// An import.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ImportBody {
    id: String,
    file_name: String,
    /// `all` or `valid`.
    mode: &'static str,
    /// READING, COMMITTING, DONE, REFUSED (rows are wrong) or FAILED (the file is).
    state: &'static str,
    /// Rows that were read by now.
    rows: u32,
    /// Rows that are vouchers.
    valid: u32,
    /// Rows that are none, whose names are unknown, or whose vouchers are in the inventory already: see the report.
    invalid: u32,
    /// Vouchers that are in the inventory by now.
    added: u32,
    /// Why nothing came in.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    created_at: DateTime<Utc>,
}

impl From<VoucherImport> for ImportBody {
    fn from(import: VoucherImport) -> Self {
        Self {
            id: import.id.to_string(),
            file_name: import.file_name,
            mode: if import.all_or_nothing { "all" } else { "valid" },
            state: import.state.as_str(),
            rows: import.counts.rows,
            valid: import.counts.valid,
            invalid: import.counts.invalid,
            added: import.counts.added,
            reason: import.reason,
            created_at: import.created_at,
        }
    }
}

/// Imports.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ImportsBody {
    imports: Vec<ImportBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Uploads a spreadsheet of vouchers. It is read in the background: ask for the import to see how far it is. The same file
/// again adds nothing.
#[utoipa::path(post, path = "/api/admin/vouchers/imports", tag = "vouchers",
    request_body(content = ImportForm, content_type = "multipart/form-data"), responses(
    (status = 202, description = "It is being read", body = ImportBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 413, description = "The file is too large", body = ProblemBody),
    (status = 415, description = "Not a form", body = ProblemBody),
    (status = 503, description = "The database is away, or other files are being read", body = ProblemBody)))]
pub(in crate::http) async fn import_vouchers(
    State(app): State<AppState>,
    _admin: Admin,
    mut form: Form,
) -> Answer<(StatusCode, Json<ImportBody>)> {
    let (file, name) = (form.take_file("file"), form.file_name("file").to_owned());
    let mut fields = form.fields();
    let mode = fields.parse("mode", |mode| match mode {
        "all" => Ok(true),
        "valid" => Ok(false),
        _ => Err("must be all or valid"),
    });
    let file = fields.require("file", file);
    fields.finish()?;
    let Some(bytes) = file else { return Err(Error::invalid("file", "is required").into()) };
    let upload = Upload { name, bytes, all_or_nothing: mode.unwrap_or(true) };
    let (import, turn) = app.vouchers().begin_import(&upload).await?;
    let (vouchers, reading) = (Arc::clone(app.vouchers()), import.clone());
    app.tasks().spawn(async move {
        if let Err(error) = vouchers.read_import(reading, upload).await {
            tracing::warn!(code = error.code().as_str(), error = %error, "an import was interrupted");
        }
        drop(turn);
    });
    Ok((StatusCode::ACCEPTED, Json(import.into())))
}

/// Imports, newest first.
#[utoipa::path(get, path = "/api/admin/vouchers/imports", tag = "vouchers", params(PageQuery), responses(
    (status = 200, description = "A page of them", body = ImportsBody),
    (status = 400, description = "A paging parameter breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn list_imports(
    State(app): State<AppState>,
    _admin: Admin,
    Paged(page): Paged,
) -> Answer<Json<ImportsBody>> {
    let listed = app.vouchers().voucher_imports(page).await?;
    let imports = listed.items.into_iter().map(Into::into).collect();
    Ok(Json(ImportsBody { imports, next_cursor: next_cursor(listed.next) }))
}

/// An import, and how far it is.
#[utoipa::path(get, path = "/api/admin/vouchers/imports/{importId}", tag = "vouchers",
    params(("importId" = String, Path, description = "Import id")), responses(
    (status = 200, description = "The import", body = ImportBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such import", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_import(
    State(app): State<AppState>,
    _admin: Admin,
    Path(id): Path<String>,
) -> Answer<Json<ImportBody>> {
    Ok(Json(app.vouchers().voucher_import(path_id(&id, NO_IMPORT)?).await?.into()))
}

fn attachment(name: &str) -> (HeaderName, String) {
    (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""))
}

/// What is wrong with the rows of an import, as CSV: row, column, reason. No code is in it.
#[utoipa::path(get, path = "/api/admin/vouchers/imports/{importId}/report.csv", tag = "vouchers",
    params(("importId" = String, Path, description = "Import id")), responses(
    (status = 200, description = "The file", body = String, content_type = "text/csv"),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such import", body = ProblemBody),
    (status = 503, description = "The database is away", body = ProblemBody)))]
pub(in crate::http) async fn show_import_report(
    State(app): State<AppState>,
    _admin: Admin,
    Path(id): Path<String>,
) -> Answer<Response> {
    let import = app.vouchers().voucher_import(path_id(&id, NO_IMPORT)?).await?;
    let vouchers = Arc::clone(app.vouchers());
    // The first part is read before anything is answered: a database that is away is a 503 and no file.
    let first = vouchers.import_report(import.id, ReportAt::Start).await?;
    let (first, at) = first.unwrap_or((Vec::new(), ReportAt::End));
    let rest = stream::try_unfold((vouchers, at), move |(vouchers, at)| async move {
        let part = vouchers.import_report(import.id, at).await?;
        Ok::<_, Error>(part.map(|(bytes, at)| (Bytes::from(bytes), (vouchers, at))))
    });
    let body = Body::from_stream(futures::StreamExt::chain(stream::iter([Ok(Bytes::from(first))]), rest));
    let kind = (header::CONTENT_TYPE, "text/csv; charset=utf-8; header=present".to_owned());
    Ok(([kind, attachment(&format!("import-{}.csv", import.id))], body).into_response())
}

/// The workbook to start from: columns that hold codes are formatted as text, and a second sheet explains them.
#[utoipa::path(get, path = "/api/admin/vouchers/template.xlsx", tag = "vouchers", responses(
    (status = 200, description = "The file", content_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody)))]
pub(in crate::http) async fn show_template_xlsx(_admin: Admin) -> Answer<Response> {
    let bytes = import::template_xlsx().map_err(|error| Error::internal("writing a template", error))?;
    Ok(([(header::CONTENT_TYPE, XLSX.to_owned()), attachment("vouchers.xlsx")], bytes).into_response())
}

/// The titles as CSV.
#[utoipa::path(get, path = "/api/admin/vouchers/template.csv", tag = "vouchers", responses(
    (status = 200, description = "The file", body = String, content_type = "text/csv"),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody)))]
pub(in crate::http) async fn show_template_csv(_admin: Admin) -> Answer<Response> {
    let kind = (header::CONTENT_TYPE, "text/csv; charset=utf-8; header=present".to_owned());
    Ok(([kind, attachment("vouchers.csv")], import::template_csv()).into_response())
}
