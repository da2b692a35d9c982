// Package adoption tries, by its tests, what docs/migration.md says of tables and
// programs that exist already: items of guregu/dynamo and of attributevalue, and
// rows of other lock clients. It is a module of its own, so that the library does
// not depend on those:
//
//	cd docs/adoption && go test ./...
package adoption
