package guard

import (
	"bytes"
	"reflect"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// OwnKey is a key for work that goes on after its caller was answered: the
// caller may use the memory of a key again, of which bytes are an example. raw
// is the encoded key.
func OwnKey(t *repo.KeyTable, key repo.Key, raw ddb.Item) repo.Key {
	decoded := t.DecodeKey(raw)
	return repo.Key{Partition: ownPart(key.Partition, decoded.Partition), Sort: ownPart(key.Sort, decoded.Sort)}
}

// ownPart keeps a part that nobody can change in place as its caller has it, for
// it is what errors show.
func ownPart(given, decoded any) any {
	switch reflect.ValueOf(given).Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map, reflect.Interface:
		if b, ok := decoded.([]byte); ok {
			return bytes.Clone(b)
		}
		return decoded
	}
	return given
}
