package load

import "encoding/base64"

// value is an attribute's value on the wire.
type value struct {
	S, N, B    *string
	SS, NS, BS []string
	L          []value
	M          map[string]value
}

// weight is the billed size of an item in bytes, by the rules that AWS
// documents.
func weight(item map[string]value) (n int) {
	for name, v := range item {
		n += len(name) + v.size()
	}
	return n
}

func (v value) size() (n int) {
	switch {
	case v.S != nil:
		return len(*v.S)
	case v.N != nil:
		return digits(*v.N)
	case v.B != nil:
		return binary(*v.B)
	case v.L != nil:
		n = 3
		for _, e := range v.L {
			n += 1 + e.size()
		}
		return n
	case v.M != nil:
		return 3 + len(v.M) + weight(v.M)
	}
	for _, s := range v.SS {
		n += len(s)
	}
	for _, s := range v.NS {
		n += digits(s)
	}
	for _, s := range v.BS {
		n += binary(s)
	}
	return max(n, 1) // 1: a truth value or null
}

// digits: about a byte for two digits, and one more.
func digits(s string) int { return min(len(s)/2+2, 21) }

func binary(s string) int {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return len(s) * 3 / 4
	}
	return len(b)
}
