package ddb

import (
	"strconv"
	"strings"
)

// canonical is the one form of all texts that DynamoDB takes for the same number: an integer
// as encoders write it, anything else as its digits without zeros at either end, and the
// power of ten that they are multiplied by. So is what is longer than any number of
// DynamoDB's: 1e999999999 would take the memory of all its digits. What is no number stays
// as it is.
func canonical(s string) string {
	if len(s) <= mostDigits && plain(s) {
		return s
	}
	mantissa, power, scientific := strings.Cut(strings.ToLower(s), "e")
	sign := ""
	if rest, negative := strings.CutPrefix(mantissa, "-"); negative {
		sign, mantissa = "-", rest
	} else {
		mantissa = strings.TrimPrefix(mantissa, "+")
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	exponent := 0
	if scientific {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil {
			return s
		}
	}
	if all == "" || strings.Trim(all, "0123456789") != "" {
		return s
	}
	digits := strings.Trim(all, "0")
	if digits == "" {
		return "0"
	}
	// Zeros at the end are in the exponent.
	exponent += len(strings.TrimLeft(all, "0")) - len(digits) - len(fraction)
	if exponent >= 0 && exponent < mostDigits && len(sign)+len(digits)+exponent <= mostDigits {
		return sign + digits + strings.Repeat("0", exponent)
	}
	return sign + digits + "e" + strconv.Itoa(exponent)
}

// mostDigits is more than any integer of DynamoDB's has, with its sign.
const mostDigits = 130

// plain reports whether a number is written as encoders write integers.
func plain(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] == '0' {
		return s == "0"
	}
	return strings.Trim(digits, "0123456789") == ""
}

// DynamoDB's limits for numbers, all included: digits without zeros at either end, and the
// powers of ten of the first of them.
const (
	keptDigits    = 38
	leastPower    = -130
	greatestPower = 125
)

// Kept reports whether DynamoDB keeps a number as it is.
func Kept(s string) bool {
	s, power, scientific := strings.Cut(canonical(s), "e")
	digits := strings.TrimPrefix(s, "-")
	if !plain(s) {
		return false
	}
	exponent := len(digits) - 1
	if scientific {
		n, err := strconv.Atoi(power)
		if err != nil {
			return false
		}
		exponent += n
	}
	return digits == "0" || len(strings.TrimRight(digits, "0")) <= keptDigits && exponent >= leastPower && exponent <= greatestPower
}
