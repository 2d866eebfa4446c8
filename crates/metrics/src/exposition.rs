//! Writes the text format of Prometheus with the encoder of `prometheus_client`.
//!
//! The library is made for OpenMetrics, which describes a counter by its name without `_total`. The older text format
//! (version 0.0.4), which scrapers get by default, uses the full name. So names are written in full, and the value of a
//! counter is encoded like that of a gauge, without a suffix.

use std::fmt::{self, Result};
use std::ops::Deref;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;

/// Registers a function that writes metrics when they are read.
pub fn register_writer<F>(registry: &mut Registry, write: F)
where
    F: Fn(&mut ExpositionWriter<'_>) -> Result + Send + Sync + 'static,
{
    registry.register_collector(Box::new(WriterCollector(write)));
}

struct WriterCollector<F>(F);

impl<F> fmt::Debug for WriterCollector<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> Result {
        f.write_str("WriterCollector")
    }
}

impl<F: Fn(&mut ExpositionWriter<'_>) -> Result + Send + Sync + 'static> Collector for WriterCollector<F> {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result {
        (self.0)(&mut ExpositionWriter(encoder))
    }
}

/// A counter whose registered name ends with `_total`.
#[derive(Clone, Debug, Default)]
pub struct Total(Counter);

impl Deref for Total {
    type Target = Counter;

    fn deref(&self) -> &Counter {
        &self.0
    }
}

impl TypedMetric for Total {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for Total {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result {
        encoder.encode_gauge(&self.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// Writes metrics, each with its help text.
pub struct ExpositionWriter<'a>(pub(super) DescriptorEncoder<'a>);

impl ExpositionWriter<'_> {
    /// Writes a gauge.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue + Copy) -> Result {
        self.value(name, help, MetricType::Gauge, value)
    }

    /// Writes a gauge with labels.
    pub fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> Result {
        self.values(name, help, MetricType::Gauge, values)
    }

    /// Writes a counter. Its name ends with `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue + Copy) -> Result {
        self.value(name, help, MetricType::Counter, value)
    }

    /// Writes a counter with labels.
    pub fn counters<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> Result {
        self.values(name, help, MetricType::Counter, values)
    }

    fn value(&mut self, name: &str, help: &str, kind: MetricType, value: impl EncodeGaugeValue + Copy) -> Result {
        self.0.encode_descriptor(name, help, None, kind)?.encode_gauge(&value)
    }

    fn values<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> Result {
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        values.into_iter().try_for_each(|(labels, value)| metric.encode_family(&labels)?.encode_gauge(&value))
    }
}
