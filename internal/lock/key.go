package lock

import (
	"bytes"
	"reflect"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// OwnKey is a key for work that goes on after its caller was answered: the
// caller may use the memory of a key again, of which bytes are an example. A part
// that nobody can change in place stays as its caller gave it, for it is what
// errors show. raw is the encoded key.
func OwnKey(t *repo.KeyTable, key repo.Key, raw ddb.Item) repo.Key {
	if !mutable(key.Partition) && !mutable(key.Sort) {
		return key
	}
	own := t.DecodeKey(raw)
	return repo.Key{Partition: ownPart(key.Partition, own.Partition), Sort: ownPart(key.Sort, own.Sort)}
}

func ownPart(given, decoded any) any {
	if !mutable(given) {
		return given
	}
	if b, ok := decoded.([]byte); ok {
		return bytes.Clone(b) // the request has the other one
	}
	return decoded
}

func mutable(part any) bool {
	switch part.(type) {
	case nil, string, int, int64:
		return false
	}
	switch reflect.TypeOf(part).Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
		return true
	}
	return false
}
