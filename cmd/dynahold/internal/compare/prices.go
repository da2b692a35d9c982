package compare

// Prices of DynamoDB in USD per million request units.
type Prices struct{ Write, Read float64 }

// OnDemand are the prices that are assumed where none are given.
var OnDemand = Prices{Write: 0.625, Read: 0.125}

// onDemandFrom says which prices those are; they change, and differ by Region.
const onDemandFrom = "on-demand, Standard table class, us-east-1, as of November 2024"

// source says where the prices come from.
func (p Prices) source() string {
	if p == OnDemand {
		return onDemandFrom
	}
	return "given on the command line"
}

// priced completes what a mode does by its cost, where there are prices.
func (s Settings) priced(m Mode) string {
	if s.Prices == (Prices{}) {
		return ""
	}
	return " for " + usd(m.Cost) + " per million"
}

// of a million changes, each of which bills these units.
func (p Prices) of(writeUnits, readUnits float64) float64 {
	return p.Write*writeUnits + p.Read*readUnits
}
