// Package telemetry has a dashboard and alert rules for what the library measures, and
// shows that they work: its tests compare what is really recorded with the tables of
// docs/telemetry.md, and let a real Prometheus evaluate every expression. It is a module
// of its own so that the library does not depend on the SDK of OpenTelemetry:
//
//	cd docs/telemetry && go test ./...
package telemetry
