//! Scripts: Lua 5.1, as Redis embeds it.
//!
//! A script runs alone and cannot be undone: when a command fails half-way, what was written before stays written.

use std::collections::BTreeMap;

use mlua::{Function, Lua, LuaOptions, StdLib, Table, Value, Variadic};

use super::number::float_text;
use super::reply::{Bytes, Reply};

/// Makes the table `redis` and the globals that a script may see, and keeps them from being changed. `host.command` is
/// put in place for each run.
const SANDBOX: &str = r#"
local host = ...
local type, error, pcall, setmetatable = type, error, pcall, setmetatable

local redis = {}
function redis.pcall(...)
  return host.command(...)
end
function redis.call(...)
  local reply = host.command(...)
  if type(reply) == 'table' and reply.err then
    error(reply, 0)
  end
  return reply
end
function redis.error_reply(text)
  return {err = text}
end
function redis.status_reply(text)
  return {ok = text}
end

local globals = {
  redis = redis, string = string, table = table, math = math,
  assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs, pcall = pcall, rawequal = rawequal,
  rawget = rawget, rawset = rawset, select = select, setmetatable = setmetatable, getmetatable = getmetatable,
  tonumber = tonumber, tostring = tostring, type = type, unpack = unpack, xpcall = xpcall,
}
setmetatable(globals, {__index = function(_, name)
  error('Script attempted to access nonexistent global variable \'' .. tostring(name) .. '\'', 2)
end})
local environment = setmetatable({}, {
  __index = globals,
  __newindex = function() error('Attempt to modify a readonly table', 2) end,
})
return globals, environment
"#;

/// The interpreter and the scripts that it knows.
pub struct Engine {
    lua: Lua,
    host: Table,
    globals: Table,
    environment: Table,
    /// Calls a script so that its failure is a value.
    protected: Function,
    scripts: BTreeMap<String, Function>,
    /// What is replaced in a script's text before it is compiled, and by what.
    patch: &'static [(&'static str, &'static str)],
}

impl Engine {
    pub fn new() -> Self {
        Self::start().unwrap()
    }

    fn start() -> mlua::Result<Self> {
        let lua = Lua::new_with(StdLib::TABLE | StdLib::STRING | StdLib::MATH, LuaOptions::default())?;
        let host = lua.create_table()?;
        let (globals, environment) = lua.load(SANDBOX).call(&host)?;
        let protected = lua.globals().get("pcall")?;
        Ok(Self { lua, host, globals, environment, protected, scripts: BTreeMap::new(), patch: &[] })
    }

    pub const fn patch(&mut self, changes: &'static [(&'static str, &'static str)]) {
        self.patch = changes;
    }

    /// Compiles a script and keeps it under its hash, which is returned.
    pub fn load(&mut self, source: &[u8]) -> Result<String, String> {
        let source = String::from_utf8_lossy(source);
        let hash = redis::Script::new(&source).get_hash().to_owned();
        if !self.scripts.contains_key(&hash) {
            let text = self.patch.iter().fold(source.to_string(), |text, (from, to)| text.replace(from, to));
            let chunk = self.lua.load(text).set_name("@user_script").set_environment(self.environment.clone());
            let compiled = chunk.into_function().map_err(|error| format!("ERR Error compiling script: {error}"))?;
            self.scripts.insert(hash.clone(), compiled);
        }
        Ok(hash)
    }

    pub fn knows(&self, hash: &str) -> bool {
        self.scripts.contains_key(hash)
    }

    pub fn forget_all(&mut self) {
        self.scripts.clear();
    }

    /// Runs a script that is known. `command` runs one command for it.
    pub fn run(&self, hash: &str, keys: &[Bytes], args: &[Bytes], command: impl FnMut(&[Bytes]) -> Reply) -> Reply {
        match self.try_run(&self.scripts[hash], keys, args, command) {
            Ok(reply) => reply,
            Err(error) => panic!("the interpreter broke: {error}"),
        }
    }

    fn try_run(
        &self,
        script: &Function,
        keys: &[Bytes],
        args: &[Bytes],
        mut command: impl FnMut(&[Bytes]) -> Reply,
    ) -> mlua::Result<Reply> {
        self.globals.raw_set("KEYS", self.strings(keys)?)?;
        self.globals.raw_set("ARGV", self.strings(args)?)?;
        let (finished, value) = self.lua.scope(|scope| {
            let call = scope.create_function_mut(move |lua: &Lua, words: Variadic<Value>| {
                let reply = match words.iter().map(word).collect::<Option<Vec<Bytes>>>() {
                    Some(words) if words.is_empty() => {
                        Reply::Error("ERR Please specify at least one argument for this redis lib call".to_owned())
                    }
                    Some(words) => command(&words),
                    None => Reply::Error("ERR Lua redis lib command arguments must be strings or integers".to_owned()),
                };
                to_lua(lua, reply)
            })?;
            self.host.raw_set("command", call)?;
            self.protected.call::<(bool, Value)>(script)
        })?;
        if finished { from_lua(&value) } else { Ok(Reply::Error(failure(&value)?)) }
    }

    fn strings(&self, items: &[Bytes]) -> mlua::Result<Table> {
        let items = items.iter().map(|item| self.lua.create_string(item)).collect::<mlua::Result<Vec<_>>>()?;
        self.lua.create_sequence_from(items)
    }
}

/// What a script passes to a command.
fn word(value: &Value) -> Option<Bytes> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        // Lua has one kind of number, a float.
        Value::Integer(number) => Some(float_text(*number as f64).into_bytes()),
        Value::Number(number) => Some(float_text(*number).into_bytes()),
        _ => None,
    }
}

fn to_lua(lua: &Lua, reply: Reply) -> mlua::Result<Value> {
    let named = |name: &str, text: String| -> mlua::Result<Value> {
        let table = lua.create_table()?;
        table.raw_set(name, text)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Nil => Ok(Value::Boolean(false)),
        Reply::Int(number) => Ok(Value::Number(number as f64)),
        Reply::Bulk(bytes) => lua.create_string(bytes).map(Value::String),
        Reply::Status(text) => named("ok", text),
        Reply::Error(text) => named("err", text),
        Reply::Array(items) => {
            let items = items.into_iter().map(|item| to_lua(lua, item)).collect::<mlua::Result<Vec<_>>>()?;
            lua.create_sequence_from(items).map(Value::Table)
        }
    }
}

/// Numbers lose what is behind the point, and an array ends at its first nil.
fn from_lua(value: &Value) -> mlua::Result<Reply> {
    Ok(match value {
        Value::String(text) => Reply::Bulk(text.as_bytes().to_vec()),
        Value::Integer(number) => Reply::Int(*number),
        Value::Number(number) => Reply::Int(*number as i64),
        Value::Boolean(true) => Reply::Int(1),
        Value::Table(table) => {
            if let Some(text) = table.raw_get::<Option<String>>("err")? {
                return Ok(Reply::Error(text));
            }
            if let Some(text) = table.raw_get::<Option<String>>("ok")? {
                return Ok(Reply::Status(text));
            }
            let items = table.sequence_values::<Value>().map(|item| from_lua(&item?));
            Reply::Array(items.collect::<mlua::Result<_>>()?)
        }
        _ => Reply::Nil,
    })
}

/// The error that a client sees when a script fails.
fn failure(value: &Value) -> mlua::Result<String> {
    Ok(match value {
        Value::Table(table) => {
            table.raw_get::<Option<String>>("err")?.unwrap_or_else(|| "ERR unknown error".to_owned())
        }
        Value::String(text) => format!("ERR {}", text.to_string_lossy()),
        Value::Error(error) => format!("ERR {error}"),
        _ => "ERR unknown error".to_owned(),
    })
}
