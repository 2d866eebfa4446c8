//! Writes the text format of Prometheus with the encoder of `prometheus_client`.
//!
//! The library is made for OpenMetrics, which describes a counter by its name without `_total`. The older text format
//! (version 0.0.4), which scrapers get by default, uses the full name. So names are written in full, and the value of a
//! counter is encoded like that of a gauge, without a suffix.

use std::fmt::Result;

use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;

/// Writes metrics, each with its help text.
pub(super) struct ExpositionWriter<'a>(pub(super) DescriptorEncoder<'a>);

impl ExpositionWriter<'_> {
    /// Writes a gauge.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue + Copy) -> Result {
        self.value(name, help, MetricType::Gauge, value)
    }

    /// Writes a gauge with labels.
    pub(super) fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> Result {
        self.values(name, help, MetricType::Gauge, values)
    }

    /// Writes a counter. Its name ends with `_total`.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue + Copy) -> Result {
        self.value(name, help, MetricType::Counter, value)
    }

    /// Writes a counter with labels.
    pub(super) fn counters<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> Result {
        self.values(name, help, MetricType::Counter, values)
    }

    /// Writes a histogram.
    pub(super) fn histogram(&mut self, name: &str, help: &str, value: &Histogram) -> Result {
        value.encode(self.0.encode_descriptor(name, help, None, MetricType::Histogram)?)
    }

    /// Writes a histogram with labels.
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
