package ddb_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/ddb"
)

func ratOf(text string) string {
	exact, _ := new(big.Rat).SetString(text)
	return exact.RatString()
}

// Two texts are equal, and name the same key, where they are the same number, and only there.
func TestFormsOfNumbers(t *testing.T) {
	table := &ddb.Table{Partition: "pk", Sort: "sk"}
	var all []string
	for _, sign := range []string{"", "-", "+"} {
		for _, mantissa := range []string{"0", "00", "0.0", "1", "10", "100", "1.0", "1.", ".1", "0.1", "0.10", "01", "12", "1.2", "120", "0.012", "12.30", strings.Repeat("9", 38), "1" + strings.Repeat("0", 128), "1" + strings.Repeat("0", 129), "1" + strings.Repeat("0", 130), "0." + strings.Repeat("0", 90) + "1"} {
			for _, power := range []string{"", "e0", "E1", "e+1", "e-1", "e-2", "e125", "e-130", "e128", "e129", "e130", "e131"} {
				all = append(all, sign+mantissa+power)
			}
		}
	}
	// Texts of one number have one key, and a key has texts of one number only.
	keys, numbers := map[string]string{}, map[string]string{}
	for _, text := range all {
		number, key := ratOf(text), table.KeyText(ddb.Item{"pk": ddb.Number(text), "sk": ddb.Number(text)})
		if other, known := keys[number]; known && other != key {
			t.Errorf("%s: key %q, and %q in another form", text, key, other)
		}
		if other, known := numbers[key]; known && other != number {
			t.Errorf("%s: key %q, which is that of %s", text, key, other)
		}
		keys[number], numbers[key] = key, number
	}
	for i, a := range all[1:] {
		same := keys[ratOf(a)] == keys[ratOf(all[i])]
		if ddb.Equal(ddb.Number(a), ddb.Number(all[i])) != same {
			t.Errorf("%s and %s: equal %v", a, all[i], !same)
		}
	}
	for _, text := range []string{"", "-", ".", "e1", "1e", "1e1.5", "--1", "1/2", "0x1", "NaN", "1_0", "1e-999999999", "1e999999999", "1e99999999999999999999"} {
		if v := ddb.Number(text); !ddb.Equal(v, ddb.Number(text)) || ddb.Equal(v, ddb.Number("1")) || ddb.Equal(v, ddb.Number("0")) {
			t.Errorf("%q is another number", text)
		}
	}
}
