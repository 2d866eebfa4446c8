//! The metrics of the services, which have their own counters. Their names are also in `docs/operations.md`; a test compares
//! both.

use std::fmt::Result;

use restante_metrics::{ExpositionWriter, Metrics, Registry, register_writer};
use restante_relay::{EntryState, TargetCounts};
use restante_script::{Outcome, ScriptEvent};

/// Registers the metrics of the services.
pub(super) fn register(services: restante_http::Services, metrics: &Metrics, registry: &mut Registry) {
    let restante_http::Services { script, webhooks, search, relay } = services;
    register_writer(registry, move |writer| {
        write_script(writer, &script.as_ref().map(|script| script.counts()).unwrap_or_default())
    });
    register_writer(registry, move |writer| {
        write_webhooks(writer, &webhooks.as_ref().map(|webhooks| webhooks.counts()).unwrap_or_default())
    });
    register_writer(registry, move |writer| {
        write_relay(writer, &relay.as_ref().map(|relay| relay.counts()).unwrap_or_default())
    });
    if let Some(search) = search {
        metrics.register_search(registry);
        register_writer(registry, move |writer| write_search(writer, search.counts()));
    }
}

fn write_script(writer: &mut ExpositionWriter<'_>, script: &restante_script::Counts) -> Result {
    writer.gauge("restante_script_loaded", "Whether a script is loaded (1) or not (0).", u64::from(script.loaded))?;
    writer.counters(
        "restante_script_calls_total",
        "Calls of the script's functions, by event and outcome.",
        ScriptEvent::ALL.into_iter().flat_map(|event| {
            let labels = |outcome: Outcome| [("event", event.name()), ("outcome", outcome.name())];
            Outcome::ALL.map(|outcome| (labels(outcome), script.calls(event, outcome)))
        }),
    )?;
    writer.gauge("restante_script_waiting", "Events that wait for the script's after functions.", script.waiting)?;
    writer.counter(
        "restante_script_dropped_total",
        "Events that were not passed to the script's after functions because too many were waiting.",
        script.dropped,
    )?;
    writer.gauge("restante_script_abandoned", "Threads that still run an abandoned call.", script.abandoned)?;
    writer.counters(
        "restante_script_reloads_total",
        "Reloads of the script, by outcome.",
        [([("outcome", "ok")], script.reloads), ([("outcome", "failed")], script.failed_reloads)],
    )
}

fn write_webhooks(writer: &mut ExpositionWriter<'_>, targets: &[restante_webhook::Counts]) -> Result {
    writer.counters(
        "restante_webhook_deliveries_total",
        "Events for webhooks, by outcome; and attempts that are retried.",
        targets.iter().flat_map(|counts| {
            let outcomes = [
                ("ok", counts.delivered),
                ("retried", counts.retried),
                ("failed", counts.failed),
                ("dropped", counts.dropped),
            ];
            outcomes.map(|(outcome, count)| ([("target", counts.target.as_str()), ("outcome", outcome)], count))
        }),
    )?;
    writer.gauges(
        "restante_webhook_waiting",
        "Events that wait for a webhook; in a shared database those of all nodes.",
        targets.iter().map(|counts| ([("target", counts.target.as_str())], counts.waiting)),
    )
}

fn write_search(writer: &mut ExpositionWriter<'_>, counts: restante_search::Counts) -> Result {
    writer.gauge("restante_search_indexed", "Messages in the search index.", counts.indexed)?;
    writer.gauge("restante_search_waiting", "Changes that wait to be added to the search index.", counts.waiting)
}

fn write_relay(writer: &mut ExpositionWriter<'_>, relay: &restante_relay::Counts) -> Result {
    let for_all_targets = |count: fn(&TargetCounts) -> u64| {
        relay.targets.iter().map(move |counts| ([("target", counts.target.as_str())], count(counts)))
    };
    writer.gauges(
        "restante_relay_entries",
        "Entries of the relay queue, by target and state; in a shared database those of all nodes.",
        relay_entries(relay).map(|(target, state, count)| ([("target", target), ("state", state.name())], count)),
    )?;
    writer.counters(
        "restante_relay_attempts_total",
        "Attempts to send a message to a relay target, by result; deferred attempts are retried.",
        relay.targets.iter().flat_map(|counts| {
            let results = [("delivered", counts.delivered), ("deferred", counts.deferred), ("failed", counts.failed)];
            results.map(|(result, count)| ([("target", counts.target.as_str()), ("result", result)], count))
        }),
    )?;
    writer.counters(
        "restante_relay_connection_failures_total",
        "Connections to a relay target that failed.",
        for_all_targets(|counts| counts.connection_failures),
    )?;
    writer.gauges(
        "restante_relay_paused",
        "Whether a relay target is paused because it cannot be reached (1) or not (0).",
        for_all_targets(|counts| u64::from(counts.is_paused)),
    )?;
    writer.counter(
        "restante_relay_loops_total",
        "Messages that matched a rule and were not forwarded because they are in a loop.",
        relay.loops,
    )?;
    writer.counter(
        "restante_relay_recipients_not_allowed_total",
        "Recipients that matched a rule and that the relay target does not allow.",
        relay.recipients_not_allowed,
    )
}

/// Returns the number of entries by target and state: for all states of each target, and for targets that are not in the
/// settings any more, but have entries.
fn relay_entries(relay: &restante_relay::Counts) -> impl Iterator<Item = (&str, EntryState, u64)> {
    let find = |target: &str, state| {
        let found = relay.entries.iter().find(|entry| entry.target == target && entry.state == state);
        found.map_or(0, |entry| entry.count)
    };
    let known = relay.targets.iter().flat_map(move |TargetCounts { target, .. }| {
        EntryState::ALL.map(|state| (target.as_str(), state, find(target, state)))
    });
    let is_known = |name: &str| relay.targets.iter().any(|counts| counts.target == name);
    let removed = relay.entries.iter().filter(move |entry| !is_known(&entry.target));
    known.chain(removed.map(|entry| (entry.target.as_str(), entry.state, entry.count)))
}
