package lock_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/repo"
)

// A key that work goes on with after its caller was answered is the caller's
// no longer, and shows what the caller has given where nobody can change that.
func TestOwnKeys(t *testing.T) {
	type name []byte
	b, n := []byte("good"), name("good")
	for _, c := range []struct {
		kind types.ScalarAttributeType
		part any
		use  func()
		want string
	}{
		{"B", b, func() { copy(b, "bad!") }, `{676f6f64}`},
		{"B", n, func() { copy(n, "bad!") }, `{676f6f64}`},
		{"S", "good", func() {}, `{"good"}`},
		{"N", 17, func() {}, `{17}`},
	} {
		table, err := repo.NewKeyTable(dynamodb.New(dynamodb.Options{}), "never-asked", repo.KeySchema{Partition: repo.KeyAttribute{Name: "pk", Type: c.kind}}, repo.TableConfig{})
		if err != nil {
			t.Fatal(err)
		}
		key := repo.Key{Partition: c.part}
		raw, err := table.EncodeKey(key)
		if err != nil {
			t.Fatal(err)
		}
		own := lock.OwnKey(table, key, raw)
		c.use()
		if own.String() != c.want || own.Sort != nil {
			t.Errorf("the key of %T is %v, want %s", c.part, own, c.want)
		}
		if _, ok := c.part.(int); ok && own != key {
			t.Errorf("the key %v is %v", key, own)
		}
	}
}
