// Package tablecheck checks the templates in docs/tables.md; all of it is in
// tests. It is a module of its own so that the library does not depend on
// parsers of YAML and HCL:
//
//	cd docs/tablecheck && go test ./... && ./cloudformation.sh
package tablecheck
