package protocol_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// A write adds ids to those that are on the item; one that drops some demands that they are
// as they were read.
func TestIDsAreAdded(t *testing.T) {
	core := protocol.Of(stored.New(&stored.Table{Table: &ddb.Table{Name: "t", Partition: "id"}, Attr: stored.Attributes{Once: "once", LockedBy: "lockedBy"}}))
	set := func(ids ...string) types.AttributeValue {
		var all [][]byte
		for _, id := range ids {
			all = append(all, []byte(id))
		}
		return &types.AttributeValueMemberBS{Value: all}
	}
	for name, c := range map[string]struct {
		was, is       types.AttributeValue
		adds, demands bool
	}{
		"the first id":           {nil, set("a"), true, false},
		"one more":               {set("a"), set("a", "b"), true, false},
		"a new epoch":            {set("a"), set("b"), false, true},
		"some went to rows":      {set("a", "b"), set("b", "c"), false, true},
		"nothing but ids leaves": {set("a", "b"), set("b"), false, true},
	} {
		w := core.NewWrite()
		item := ddb.Item{}
		if c.was != nil {
			item[core.Once[0]] = c.was
		}
		w.ApplyOn(item, ddb.Diff{Set: []ddb.Attribute{{Name: core.Once[0], Value: c.is}}})
		in, err := w.Update(ddb.Item{"id": ddb.Text("x")})
		if err != nil {
			t.Fatal(name, err)
		}
		adds, demands := strings.Contains(*in.UpdateExpression, "ADD"), in.ConditionExpression != nil
		if adds != c.adds || demands != c.demands {
			t.Errorf("%s: adds %v, demands %v: %s", name, adds, demands, *in.UpdateExpression)
		}
	}
}
