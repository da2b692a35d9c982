package ddb_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Two texts are equal, and name the same key, where they are the same number, and only there.
func TestFormsOfNumbers(t *testing.T) {
	table := &ddb.Table{Partition: "pk", Sort: "sk"}
	var all []string
	for _, sign := range []string{"", "-", "+"} {
		for _, mantissa := range []string{"0", "00", "0.0", "1", "10", "100", "1.0", "1.", ".1", "0.1", "0.10", "01", "12", "1.2", "120", "0.012", "12.30", strings.Repeat("9", 38), "0." + strings.Repeat("0", 90) + "1"} {
			for _, power := range []string{"", "e0", "E1", "e+1", "e-1", "e-2", "e125", "e-130"} {
				all = append(all, sign+mantissa+power)
			}
		}
	}
	for _, a := range all {
		x, _ := new(big.Rat).SetString(a)
		for _, b := range all {
			y, _ := new(big.Rat).SetString(b)
			same := x.Cmp(y) == 0
			left, right := ddb.Item{"pk": ddb.Number(a), "sk": ddb.Number(b)}, ddb.Item{"pk": ddb.Number(b), "sk": ddb.Number(a)}
			if ddb.Equal(left["pk"], right["pk"]) != same || (table.KeyText(left) == table.KeyText(right)) != same {
				t.Errorf("%s and %s: equal %v", a, b, !same)
			}
		}
	}
	for _, text := range []string{"", "-", ".", "e1", "1e", "1e1.5", "--1", "1/2", "0x1", "NaN", "1_0", "1e-999999999", "1e999999999", "1e99999999999999999999"} {
		if v := ddb.Number(text); !ddb.Equal(v, ddb.Number(text)) || ddb.Equal(v, ddb.Number("1")) || ddb.Equal(v, ddb.Number("0")) {
			t.Errorf("%q is another number", text)
		}
	}
}
