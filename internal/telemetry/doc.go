// Package telemetry tells the outside what the library does: spans, metrics and log
// events, by the semantic conventions of OpenTelemetry. It is the only place that knows
// their names; docs/telemetry.md lists them, and tests compare the two.
//
// An [Observer] belongs to one table. Its providers are those of the table's settings,
// or else the global ones, as in other instrumentations. What nobody listens to costs an
// atomic load, and allocates nothing: neither where a no-op provider is given, nor while
// no global provider is installed. One that is installed later is heard of from then on.
//
// Metrics and spans have the table and the kind of what is held or changed, and never the
// key of an item, nor the name of a lock or resource: these are too many for metrics, and
// may be personal data. A setting asks for them, on spans only. Log events have them:
// without it nobody could act on one.
package telemetry
