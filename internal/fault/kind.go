package fault

import "fmt"

// Kind is what happens to a request.
type Kind int

// What can happen. "Delivered" means that the engine has acted.
const (
	None                Kind = iota
	DropRequest              // never delivered; the caller sees a reset connection
	LoseResponse             // delivered; the caller sees a reset connection
	CutResponse              // delivered; the connection ends within the answer
	Resend                   // delivered twice; the caller sees the second answer
	LateDuplicate            // delivered and answered; a copy is delivered later
	Delay                    // delivered later
	DelayResponse            // delivered; answered later
	Truncate                 // delivered; half of the answer arrives and looks whole
	Error500                 // not delivered; answered by 500
	Error500After            // delivered; answered by 500
	Throttle                 // not delivered; answered by a throttling error
	TransactionConflict      // not delivered; answered by a conflict with a transaction
	Empty                    // not delivered; answered by a 200 without a body
	EmptyAfter               // delivered; answered by a 200 without a body
	Refuse                   // the connection is refused: certainly not sent
	HoldRequest              // handed to [Injector.Held]; delivered once it is released
	HoldResponse             // delivered, handed to [Injector.Held]; answered once it is released
	Blank                    // not delivered; answered by a 200 with an empty object and without a checksum
	NoImage                  // delivered; the answer does not show the items that failed a condition
	kinds
)

var kindNames = [kinds]string{"none", "request dropped", "response lost", "response cut", "resent", "late duplicate", "delayed",
	"response delayed", "truncated", "500 before", "500 after", "throttled", "transaction conflict", "empty answer before", "empty answer after", "connection refused",
	"request held", "response held", "blank answer", "no image"}

func (k Kind) String() string {
	if k < 0 || k >= kinds {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// AllKinds are all faults that a schedule can inject. The two that hold a
// message are not among them: they need a test that releases it. Neither are
// those that are habits of an endpoint: one that was never seen to give a
// checksum, or an image, cannot be suspected when it gives none.
func AllKinds() (all []Kind) {
	for k := DropRequest; k <= Refuse; k++ {
		all = append(all, k)
	}
	return all
}
