//! The global `inbucket`: where scripts put their functions, and the way to the store and to what states share.

use mlua::{AnyUserData, Function, Lua, MetaMethod, UserData, UserDataMethods, Value};

use super::values::{fault, kind_of, name, shown};
use crate::event::Event;

/// The fields that hold functions.
const MOMENTS: [&str; 2] = ["before", "after"];

/// The object itself.
struct Inbucket;

/// One of its [`MOMENTS`].
struct Moment(&'static str);

/// The functions that the script has defined, by event; lies in the app data of a state.
#[derive(Default)]
struct Handlers([Option<Function>; Event::ALL.len()]);

/// The object for a new state.
pub(super) fn object(lua: &Lua) -> mlua::Result<AnyUserData> {
    lua.set_app_data(Handlers::default());
    let object = lua.create_userdata(Inbucket)?;
    for moment in MOMENTS {
        object.set_named_user_value(moment, Moment(moment))?;
    }
    Ok(object)
}

/// What the script has defined for an event.
pub(super) fn handler(lua: &Lua, event: Event) -> Option<Function> {
    lua.app_data_ref::<Handlers>()?.0[event as usize].clone()
}

impl UserData for Inbucket {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_function(MetaMethod::Index, |lua, (object, key): (AnyUserData, Value)| {
            match name(&key).as_deref() {
                Some(b"before") => object.named_user_value("before"),
                Some(b"after") => object.named_user_value("after"),
                // Whoever makes a state puts these into its registry.
                Some(b"store") => lua.named_registry_value("restante.store"),
                Some(b"shared") => lua.named_registry_value("restante.shared"),
                Some(b"sleep") => lua.named_registry_value("restante.sleep"),
                Some(b"version") => lua.create_string(env!("CARGO_PKG_VERSION")).map(Value::String),
                _ => Ok(Value::Nil),
            }
        });
        methods.add_meta_method(MetaMethod::NewIndex, |lua, _, (key, _): (Value, Value)| -> mlua::Result<()> {
            let key = shown(&key);
            Err(fault(lua, format_args!("attempt to set field '{key}' of inbucket; {}", known_events())))
        });
        methods.add_meta_method(MetaMethod::ToString, |_, _, ()| Ok("inbucket"));
    }
}

impl Moment {
    fn event(&self, key: &Value) -> Option<Event> {
        let name = name(key)?;
        Event::ALL.into_iter().find(|event| {
            event.name().strip_prefix(self.0).and_then(|rest| rest.strip_prefix('.')).map(str::as_bytes) == Some(&*name)
        })
    }
}

impl UserData for Moment {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, this, key: Value| {
            Ok(this.event(&key).and_then(|event| handler(lua, event)))
        });
        methods.add_meta_method(MetaMethod::NewIndex, |lua, this, (key, value): (Value, Value)| {
            let Some(event) = this.event(&key) else {
                let key = shown(&key);
                return Err(fault(lua, format_args!("there is no event {}.{key}; {}", this.0, known_events())));
            };
            let function = match value {
                Value::Nil => None,
                Value::Function(function) => Some(function),
                other => {
                    let kind = kind_of(&other);
                    return Err(fault(lua, format_args!("inbucket.{event} must be a function, not {kind}")));
                }
            };
            if let Some(mut handlers) = lua.app_data_mut::<Handlers>() {
                handlers.0[event as usize] = function;
            }
            Ok(())
        });
        methods.add_meta_method(MetaMethod::ToString, |_, this, ()| Ok(format!("inbucket.{}", this.0)));
    }
}

fn known_events() -> String {
    format!("functions can be given to inbucket.{}", Event::ALL.map(Event::name).join(", inbucket."))
}
