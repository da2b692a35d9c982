package verify

import "time"

// Breach is a change that the protocol does not allow.
type Breach struct {
	Rule     string    `json:"rule"`
	Table    string    `json:"table,omitempty"`
	Item     string    `json:"item"`
	Sequence string    `json:"sequence,omitempty"`
	Time     time.Time `json:"time"`
	Says     string    `json:"says"`
}

// Report is what a history came to.
type Report struct {
	Changes  int      `json:"changes"`
	Items    int      `json:"items"`
	Writes   int      `json:"writes"`  // that left an id of the library's
	Holds    int      `json:"holds"`   // of locks that began
	Calls    int      `json:"calls"`   // of the programs' own records
	Dropped  int      `json:"dropped"` // calls that they have left out
	Gaps     int      `json:"gaps"`    // places where changes are missing: nothing is known of them
	Foreign  int      `json:"foreign"` // changes by writers that do not follow the protocol, which were allowed
	Breaches []Breach `json:"breaches"`
}
