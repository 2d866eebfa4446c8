//! The global `inbucket`: contains the functions of scripts, and gives access to the store, the relay and the
//! shared dictionary.

use mlua::{AnyUserData, Function, Lua, MetaMethod, UserData, UserDataMethods, Value};

use super::values::{describe_type, display_key, field_name, script_error};
use crate::event::ScriptEvent;

/// The registry key of the table `restante.store`.
pub(crate) const STORE_KEY: &str = "restante.store";

/// The registry key of the table `restante.shared`.
pub(crate) const SHARED_KEY: &str = "restante.shared";

/// The registry key of the function `restante.release`.
pub(crate) const RELEASE_KEY: &str = "restante.release";

/// The registry key of the function `restante.sleep`.
pub(crate) const SLEEP_KEY: &str = "restante.sleep";

/// The fields that contain functions.
const PHASES: [&str; 2] = ["before", "after"];

/// The object itself.
struct Inbucket;

/// One of the [`PHASES`].
struct Phase(&'static str);

/// The functions that the script has defined, by event. Stored in the app data of a state.
#[derive(Default)]
struct Handlers {
    functions: [Option<Function>; ScriptEvent::ALL.len()],
    /// Whether they can no longer be changed.
    are_frozen: bool,
}

/// Creates the object for a new state.
pub(super) fn object(lua: &Lua) -> mlua::Result<AnyUserData> {
    lua.set_app_data(Handlers::default());
    let object = lua.create_userdata(Inbucket)?;
    for phase in PHASES {
        object.set_named_user_value(phase, Phase(phase))?;
    }
    // Scripts for newer versions of Inbucket put settings here. They have no effect.
    object.set_named_user_value("config", lua.create_table()?)?;
    Ok(object)
}

/// Returns the function that the script has defined for an event.
pub(crate) fn handler(lua: &Lua, event: ScriptEvent) -> Option<Function> {
    lua.app_data_ref::<Handlers>()?.functions[event as usize].clone()
}

/// Sets whether the script is prevented from defining functions for events. After loading it is, because all states
/// must have the same functions.
pub(crate) fn set_handlers_frozen(lua: &Lua, are_frozen: bool) {
    if let Some(mut handlers) = lua.app_data_mut::<Handlers>() {
        handlers.are_frozen = are_frozen;
    }
}

/// Returns whether a value is the original global `inbucket`.
pub(crate) fn is_inbucket(value: &Value) -> bool {
    value.as_userdata().is_some_and(AnyUserData::is::<Inbucket>)
}

impl UserData for Inbucket {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_function(MetaMethod::Index, |lua, (object, key): (AnyUserData, Value)| {
            match field_name(&key).as_deref() {
                Some(b"before") => object.named_user_value("before"),
                Some(b"after") => object.named_user_value("after"),
                Some(b"config") => object.named_user_value("config"),
                // `modules::install` puts these into the registry.
                Some(b"store") => lua.named_registry_value(STORE_KEY),
                Some(b"shared") => lua.named_registry_value(SHARED_KEY),
                Some(b"release") => lua.named_registry_value(RELEASE_KEY),
                Some(b"sleep") => lua.named_registry_value(SLEEP_KEY),
                Some(b"version") => lua.create_string(env!("CARGO_PKG_VERSION")).map(Value::String),
                _ => Ok(Value::Nil),
            }
        });
        let write = |lua: &Lua, (object, key, value): (AnyUserData, Value, Value)| {
            if let (Some(b"config"), Value::Table(config)) = (field_name(&key).as_deref(), value) {
                return object.set_named_user_value("config", config);
            }
            let key = display_key(&key);
            Err(script_error(lua, format_args!("attempt to set field '{key}' of inbucket; {}", known_events())))
        };
        methods.add_meta_function(MetaMethod::NewIndex, write);
        methods.add_meta_method(MetaMethod::ToString, |_, _, ()| Ok("inbucket"));
    }
}

impl Phase {
    fn event(&self, key: &Value) -> Option<ScriptEvent> {
        let name = field_name(key)?;
        ScriptEvent::ALL.into_iter().find(|event| {
            event.name().strip_prefix(self.0).and_then(|rest| rest.strip_prefix('.')).map(str::as_bytes) == Some(&*name)
        })
    }

    fn unknown_event(&self, lua: &Lua, key: &Value) -> mlua::Error {
        if self.0 == "before" && field_name(key).as_deref() == Some(b"mail_accepted") {
            let text = "there is no event before.mail_accepted any more; it is now inbucket.before.mail_from_accepted(session)";
            return script_error(lua, text);
        }
        script_error(lua, format_args!("there is no event {}.{}; {}", self.0, display_key(key), known_events()))
    }
}

impl UserData for Phase {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, this, key: Value| {
            Ok(this.event(&key).and_then(|event| handler(lua, event)))
        });
        methods.add_meta_method(MetaMethod::NewIndex, |lua, this, (key, value): (Value, Value)| {
            let Some(event) = this.event(&key) else {
                return Err(this.unknown_event(lua, &key));
            };
            let function = match value {
                Value::Nil => None,
                Value::Function(function) => Some(function),
                other => {
                    let kind = describe_type(&other);
                    return Err(script_error(lua, format_args!("inbucket.{event} must be a function, not {kind}")));
                }
            };
            match lua.app_data_mut::<Handlers>() {
                Some(handlers) if handlers.are_frozen => {
                    let text = format_args!("inbucket.{event} has to be defined while the script is loaded");
                    return Err(script_error(lua, text));
                }
                Some(mut handlers) => handlers.functions[event as usize] = function,
                None => {}
            }
            Ok(())
        });
        methods.add_meta_method(MetaMethod::ToString, |_, this, ()| Ok(format!("inbucket.{}", this.0)));
    }
}

fn known_events() -> String {
    format!("functions can be assigned to inbucket.{}", ScriptEvent::ALL.map(ScriptEvent::name).join(", inbucket."))
}
