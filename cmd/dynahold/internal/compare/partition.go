package compare

import (
	"math"

	"github.com/dynahold/dynahold/internal/load"
)

// What one partition of DynamoDB takes per second. A single item is in a single
// partition, however much DynamoDB splits a busy table.
const (
	partitionWriteUnits = 1000
	partitionReadUnits  = 3000
)

// capacity is what a change bills.
type capacity struct{ write, read float64 }

// partitionMax is how many changes per second the whole workload can make
// before its hottest item uses up a partition, if that item has one for itself.
// What it bills is counted where the choice is skewed. Where all items are
// alike it is their share of all.
func partitionMax(w load.Workload, all, hot capacity) float64 {
	if w.Zipf == 0 {
		n := float64(max(1, w.Items))
		hot = capacity{all.write / n, all.read / n}
	}
	most := math.Inf(1)
	if hot.write > 0 {
		most = min(most, partitionWriteUnits/hot.write)
	}
	if hot.read > 0 {
		most = min(most, partitionReadUnits/hot.read)
	}
	return most
}

// hottest is the share of all changes that the hottest item gets. The harness
// chooses item k with a weight of (1+k)^-zipf.
func hottest(items int, zipf float64) float64 {
	if zipf == 0 {
		return 1 / float64(max(1, items))
	}
	var all float64
	for k := range items {
		all += math.Pow(float64(1+k), -zipf)
	}
	return 1 / max(1, all)
}
