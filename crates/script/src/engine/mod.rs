//! A Lua state with a loaded script, and the calls into it. The objects that scripts get are in `objects`, the modules
//! they require in `modules`, threads and queues in `pool`.

mod execute;
mod library;
mod location;
mod log_quota;
mod program;
mod raised;
mod sources;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use mlua::chunk::ChunkMode;
use mlua::{Function, IntoLuaMulti, Lua, LuaOptions, Value};
use restante_mail::naming::Naming;

pub(crate) use location::CallLocation;
pub(crate) use program::Program;

use crate::call_error::{self, CallError, CallErrorKind, SourceLocation};
use crate::event::{Call, CallContext, Reply, ScriptEvent};
use crate::limits::{LimitExceeded, Limiter};
use crate::services::{Log, Services};
use crate::{modules, objects};
use library::Globals;
use log_quota::LogQuota;
use sources::Sources;

/// A Lua state in which the script has run.
pub(crate) struct Engine {
    /// The Lua state.
    pub(crate) lua: Lua,
    limiter: Limiter,
    log_quota: Arc<LogQuota>,
    sources: Arc<Sources>,
    naming: Naming,
    globals: Globals,
    /// The function of each event, in the order of [`ScriptEvent::ALL`].
    handlers: [Option<Function>; 5],
    location: Arc<CallLocation>,
    /// The names of the global functions of the script, sorted.
    pub(crate) functions: Vec<String>,
    /// Whether a limit was exceeded, so that the state must not be used again.
    pub(crate) is_spent: bool,
}

impl Engine {
    /// Creates a state and runs the script in it.
    fn new(program: &Program) -> Result<Self, CallError> {
        let limiter = Limiter::new(&program.settings);
        let log_quota = Arc::new(LogQuota::new(Arc::clone(&program.services.log)));
        let (lua, globals) =
            new_state(program, &limiter, &log_quota).map_err(|error| to_call_error(&program.sources, &error))?;
        let location = CallLocation::new(limiter.clone(), &program.sources, Default::default());
        let mut engine = Self {
            lua,
            limiter,
            log_quota,
            sources: Arc::clone(&program.sources),
            naming: program.settings.naming,
            globals,
            handlers: Default::default(),
            location: Arc::new(location),
            functions: Vec::new(),
            is_spent: false,
        };
        engine.load()?;
        engine.check_globals()?;
        engine.functions = engine.globals.persist().map_err(|error| engine.fail(None, &error))?;
        library::seal_string_metatable(&engine.lua).map_err(|error| engine.fail(None, &error))?;
        engine.handlers = ScriptEvent::ALL.map(|event| objects::handler(&engine.lua, event));
        objects::set_handlers_frozen(&engine.lua, true);
        let definitions = engine.handlers.each_ref().map(|handler| definition(handler.as_ref()?));
        engine.location = Arc::new(CallLocation::new(engine.limiter.clone(), &engine.sources, definitions));
        for event in [ScriptEvent::MailFrom, ScriptEvent::RcptTo] {
            let Some(handler) = engine.handlers[event as usize].take() else { continue };
            engine.handlers[event as usize] =
                Some(engine.within_limits(None, |lua| objects::wrap_handler(lua, handler))?);
        }
        Ok(engine)
    }

    /// Returns the events that the script has functions for.
    pub(crate) fn handlers(&self) -> Vec<ScriptEvent> {
        ScriptEvent::ALL.into_iter().filter(|event| self.handlers[*event as usize].is_some()).collect()
    }

    /// Calls the function of an event. Without one, the reply is that of a function that returns nil.
    pub(crate) fn run(&mut self, call: &Call) -> Result<Reply, CallError> {
        let event = call.event();
        let Some(handler) = self.handlers[event as usize].clone() else { return self.parse_reply(call, &Value::Nil) };
        let argument = argument(&self.lua, call).map_err(|error| self.fail(Some(event), &error))?;
        let result = self.within_limits(Some(event), |_| handler.call(argument));
        let reply = result.and_then(|value| self.parse_reply(call, &value));
        objects::clear_message_cache(&self.lua);
        reply
    }

    /// Returns the location of the current call, for other threads.
    pub(crate) fn location(&self) -> Arc<CallLocation> {
        Arc::clone(&self.location)
    }

    /// Returns a global of the script.
    pub(crate) fn global(&self, name: &str) -> Option<Value> {
        self.globals.call_globals.get::<Option<Value>>(name).ok().flatten()
    }

    /// Calls any function with the limits of a call, as if it were handling `event`.
    pub(crate) fn call(
        &mut self,
        event: Option<ScriptEvent>,
        function: &Function,
        arguments: impl IntoLuaMulti,
    ) -> Result<Value, CallError> {
        self.within_limits(event, |_| function.call(arguments))
    }

    fn parse_reply(&self, call: &Call, value: &Value) -> Result<Reply, CallError> {
        let event = call.event();
        let reply = match call {
            Call::MailFrom(_) | Call::RcptTo(..) => {
                objects::parse_verdict(value).map(Reply::Verdict).map_err(|text| format!("{event} {text}"))
            }
            Call::BeforeStored(message) => {
                objects::parse_inbound_result(value, message, self.naming).map(Reply::Message)
            }
            Call::AfterStored(_) | Call::AfterDeleted(_) => Ok(Reply::Nothing),
        };
        let location = || self.location.definition(event);
        reply.map_err(|text| CallError { kind: CallErrorKind::InvalidResult, location: location(), text })
    }

    fn load(&mut self) -> Result<(), CallError> {
        let sources = Arc::clone(&self.sources);
        let script = &sources.main;
        self.within_limits(None, |lua| {
            let chunk = lua.load(&script.text).set_name(format!("@{}", script.name));
            chunk.set_mode(ChunkMode::Text).call::<()>(())
        })
    }

    /// Checks that the script has not replaced `inbucket` or `restante`: functions defined in the replacement would
    /// never be called.
    fn check_globals(&self) -> Result<(), CallError> {
        for name in ["inbucket", "restante"] {
            let value = self.globals.call_globals.raw_get(name).unwrap_or(Value::Nil);
            if !value.is_nil() && !objects::is_inbucket(&value) {
                let text = format!(
                    "the script replaces the global {name} by {}; set its fields instead",
                    objects::describe_type(&value)
                );
                return Err(CallError { kind: CallErrorKind::Script, location: None, text });
            }
        }
        Ok(())
    }

    fn within_limits<T>(
        &mut self,
        event: Option<ScriptEvent>,
        body: impl FnOnce(&Lua) -> mlua::Result<T>,
    ) -> Result<T, CallError> {
        let deadline = self.limiter.start_call(&self.lua).map_err(|error| self.fail(event, &error))?;
        CallContext { event, deadline }.set_current(&self.lua);
        self.log_quota.reset();
        let result = body(&self.lua);
        let exceeded = self.limiter.finish_call(&self.lua).map_err(|error| self.fail(event, &error))?;
        if let Some(exceeded) = exceeded {
            self.is_spent = true;
            return Err(self.fail_limit(event, exceeded));
        }
        let cleared = if event.is_some() { self.globals.clear() } else { Ok(()) };
        let result = result.and_then(|value| cleared.map(|()| value));
        result.map_err(|error| self.fail(event, &error))
    }

    /// Converts an error of the current call. Out of memory makes the state unusable.
    fn fail(&mut self, event: Option<ScriptEvent>, error: &mlua::Error) -> CallError {
        let mut call_error = to_call_error(&self.sources, error);
        call_error.text = raised::describe(&self.lua, call_error.text);
        if call_error.kind != CallErrorKind::Memory {
            // `return smtp.deny(...)` is a tail call, so an error in it has no line.
            let location = call_error.location.or_else(|| self.location.definition(event?));
            return CallError { location, ..call_error };
        }
        self.is_spent = true;
        self.fail_limit(event, LimitExceeded { kind: CallErrorKind::Memory, location: call_error.location })
    }

    fn fail_limit(&self, event: Option<ScriptEvent>, exceeded: LimitExceeded) -> CallError {
        let LimitExceeded { kind, location } = exceeded;
        let location = location.map(|(file, line)| (self.sources.full_name(file), line));
        let location = location.or_else(|| self.location.last_seen()).or_else(|| self.location.definition(event?));
        CallError { kind, location, text: self.limiter.describe(kind) }
    }
}

/// Creates a state that is ready to load the script.
fn new_state(program: &Program, limiter: &Limiter, log_quota: &Arc<LogQuota>) -> mlua::Result<(Lua, Globals)> {
    let lua = Lua::new_with(library::standard_libraries(), LuaOptions::default())?;
    let log: Arc<dyn Log> = Arc::clone(log_quota) as Arc<dyn Log>;
    let services = &Services { log, ..program.services.clone() };
    modules::install(&lua, services, &program.shared)?;
    objects::install(&lua, services, program.settings.naming)?;
    let globals = library::install(&lua, limiter, &program.sources, services, program.settings.sandbox)?;
    limiter.install(&lua)?;
    Ok((lua, globals))
}

/// Creates the argument of the function of an event.
fn argument(lua: &Lua, call: &Call) -> mlua::Result<Value> {
    match call {
        Call::MailFrom(envelope) => objects::session_text(lua, envelope, None),
        Call::RcptTo(envelope, candidate) => objects::session_text(lua, envelope, Some(candidate)),
        Call::BeforeStored(message) => objects::inbound(lua, message),
        Call::AfterStored(summary) => objects::metadata(lua, summary, true),
        Call::AfterDeleted(summary) => objects::metadata(lua, summary, false),
    }
}

/// Returns where a function is defined.
fn definition(function: &Function) -> Option<SourceLocation> {
    let info = function.info();
    Some((info.short_src?, u32::try_from(info.line_defined?).ok()?))
}

fn to_call_error(sources: &Sources, error: &mlua::Error) -> CallError {
    let (kind, location, text) = call_error::describe(error);
    let location = location.map(|(file, line)| (sources.full_name(file), line));
    CallError { kind, location, text }
}
