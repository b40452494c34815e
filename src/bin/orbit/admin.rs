//! `orbit admin`.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Subcommand;
use orbit::app::App;
use orbit::config::{Config, SecretString};
use orbit::domain::account::EmailAddress;

/// Administrators cannot sign up; they are made here.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Make an administrator. The password comes from `ORBIT_ADMIN_PASSWORD`, or from standard input.
    Create {
        /// The address to sign in with.
        #[arg(long)]
        email: String,
    },
}

/// Makes an administrator.
pub async fn run(command: AdminCommand, config: Config) -> anyhow::Result<ExitCode> {
    let AdminCommand::Create { email } = command;
    anyhow::ensure!(email.contains('@'), "--email must be an e-mail address");
    let password = password()?;
    let chars_min = config.auth.password_chars_min;
    let app = App::connect(config).await?;
    app.mongo().migrate().await?;
    let email = EmailAddress::normalise(&email);
    app.accounts()
        .create_admin(&email, password, chars_min)
        .await
        .map_err(|error| anyhow::anyhow!("{}", error.public_message()))?;
    writeln!(std::io::stdout(), "administrator {} created", email.as_str())?;
    Ok(ExitCode::SUCCESS)
}

/// Never an argument: arguments are visible to every user of the machine.
fn password() -> anyhow::Result<SecretString> {
    if let Ok(password) = std::env::var("ORBIT_ADMIN_PASSWORD") {
        return Ok(password.into());
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("reading the password from standard input")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned().into())
}
