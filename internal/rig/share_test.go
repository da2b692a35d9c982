package rig

import "testing"

func TestShare(t *testing.T) {
	for level, want := range map[string]struct {
		share       int
		quick, soak bool
	}{"": {1, true, false}, "full": {10, false, false}, "soak": {10, false, true}} {
		t.Setenv(proof, level)
		if testing.Short() {
			want.share, want.quick, want.soak = 1, true, false
		}
		if got := Share(1, 10); got != want.share || Quick() != want.quick || Soaking() != want.soak {
			t.Errorf("%q: share %d, quick %v, soak %v; want %+v", level, got, Quick(), Soaking(), want)
		}
	}
	t.Setenv(proof, "ful")
	defer func() {
		if recover() == nil {
			t.Error("a misspelt level was taken for the quick share")
		}
	}()
	Share(1, 10)
}
