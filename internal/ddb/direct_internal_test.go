package ddb

import (
	"errors"
	"testing"
)

// A request whose result the SDK has not looked at may have been applied, whatever the
// SDK says.
func TestAResultThatNobodyHasReadProvesNothing(t *testing.T) {
	refusal := errors.New("refused")
	a := &attempt{sent: 1, ran: true, happened: &happened{}}
	err := a.learned(t.Context(), refusal)
	seen := a.judged()
	if kind := seen.classify(err); kind != ambiguous || !errors.Is(err, refusal) {
		t.Errorf("class %v, %v", kind, err)
	}
	a.happened.told.Store(true)
	if err := a.learned(t.Context(), refusal); err != refusal { //nolint:errorlint // unchanged
		t.Errorf("%v", err)
	}
}
