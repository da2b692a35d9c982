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

// partitionMax is how many changes per second the whole workload can make
// before its hottest item uses up a partition.
func partitionMax(w load.Workload, writeUnits, readUnits float64) float64 {
	most := math.Inf(1)
	share := hottest(w.Items, w.Zipf)
	if writeUnits > 0 {
		most = min(most, partitionWriteUnits/writeUnits/share)
	}
	if readUnits > 0 {
		most = min(most, partitionReadUnits/readUnits/share)
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
