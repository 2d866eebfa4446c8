//! One exposition in the making: the library's encoder, writing what every scraper understands.
//!
//! The library is made for OpenMetrics, where a counter is described by its name without `_total`. In the older text
//! format (version 0.0.4), which is the one that nobody has to ask for, it is described by the name that it has. So names
//! are written out in full, and the value of a counter is encoded as that of a gauge is: as it stands.

use std::fmt::Result;

use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;

/// A page that metrics are written to, each with its help.
pub(super) struct ExpositionWriter<'a>(pub(super) DescriptorEncoder<'a>);

impl ExpositionWriter<'_> {
    /// A value that goes up and down.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue + Copy) -> Result {
        self.value(name, help, MetricType::Gauge, value)
    }

    /// The same, told apart by labels.
    pub(super) fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> Result {
        self.values(name, help, MetricType::Gauge, values)
    }

    /// A value that only goes up; its name ends with `_total`.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue + Copy) -> Result {
        self.value(name, help, MetricType::Counter, value)
    }

    /// The same, told apart by labels.
    pub(super) fn counters<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> Result {
        self.values(name, help, MetricType::Counter, values)
    }

    /// How many observations there were up to which size.
    pub(super) fn histogram(&mut self, name: &str, help: &str, value: &Histogram) -> Result {
        value.encode(self.0.encode_descriptor(name, help, None, MetricType::Histogram)?)
    }

    /// The same, told apart by labels.
    pub(super) fn histograms<'h, L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, &'h Histogram)>,
    ) -> Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        values.into_iter().try_for_each(|(labels, value)| value.encode(metric.encode_family(&labels)?))
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
