package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// size of an item in bytes, written as 100KB.
type size int

var sizeForm = regexp.MustCompile(`^(\d+(?:\.\d+)?)\s*(B|KB|KIB)?$`)

// UnmarshalText implements encoding.TextUnmarshaler. DynamoDB counts 1,024
// bytes as a kilobyte, and so does this.
func (s *size) UnmarshalText(text []byte) error {
	parts := sizeForm.FindStringSubmatch(strings.ToUpper(strings.TrimSpace(string(text))))
	if parts == nil {
		return fmt.Errorf("%q is no size: write 512B, 1KB or 100KB", text)
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	if err != nil {
		return err
	}
	if strings.HasPrefix(parts[2], "K") {
		n *= 1024
	}
	if n > math.MaxInt32 {
		return fmt.Errorf("%q is more than an item of DynamoDB can have", text)
	}
	*s = size(math.Round(n))
	return nil
}
