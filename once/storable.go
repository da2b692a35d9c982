package once

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// What DynamoDB takes, as "Quotas in Amazon DynamoDB" and "Supported data types" say:
// engines for tests take more.
const (
	maxLevels    = 32         // lists and maps inside each other
	maxDigits    = 38         // of a number, without zeros at its ends
	maxMagnitude = 125        // the greatest power of ten in d.ddd × 10^n
	minMagnitude = -130       // and the least
	maxName      = 64<<10 - 1 // bytes of an attribute's name inside a map
)

// stored is a value in the form in which DynamoDB gives it back: numbers without zeros at
// their ends, sets in one order, though theirs is none. The error says why DynamoDB would
// refuse the value; it says nothing of what the value is.
func stored(v types.AttributeValue, level int) (types.AttributeValue, error) {
	if level > maxLevels {
		return nil, fmt.Errorf("it has more than %d levels", maxLevels)
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v, text(v.Value)
	case *types.AttributeValueMemberN:
		n, err := number(v.Value)
		return &types.AttributeValueMemberN{Value: n}, err
	case *types.AttributeValueMemberB, *types.AttributeValueMemberBOOL:
		return v, nil
	case *types.AttributeValueMemberNULL:
		if !v.Value {
			return nil, errors.New("a NULL is false")
		}
		return v, nil
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return set(v)
	case *types.AttributeValueMemberL:
		list := make([]types.AttributeValue, len(v.Value))
		for i, e := range v.Value {
			var err error
			if list[i], err = stored(e, level+1); err != nil {
				return nil, err
			}
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	case *types.AttributeValueMemberM:
		return storedMap(v.Value, level)
	}
	return nil, errors.New("a part of it encodes itself to nothing")
}

func storedMap(m map[string]types.AttributeValue, level int) (types.AttributeValue, error) {
	kept := make(map[string]types.AttributeValue, len(m))
	for name, e := range m {
		if name == "" || len(name) > maxName {
			return nil, fmt.Errorf("a map has a key of %d bytes: DynamoDB takes 1 to %d", len(name), maxName)
		}
		err := text(name)
		if err == nil {
			kept[name], err = stored(e, level+1)
		}
		if err != nil {
			return nil, err
		}
	}
	return &types.AttributeValueMemberM{Value: kept}, nil
}

// text refuses what would not come back as it was: it is sent as JSON.
func text(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("a text in it is not valid UTF-8: bytes are for a []byte")
	}
	return nil
}

// set refuses a set without elements, and one that has an element twice.
func set(v types.AttributeValue) (types.AttributeValue, error) {
	switch v := v.(type) {
	case *types.AttributeValueMemberSS:
		for _, s := range v.Value {
			if err := text(s); err != nil {
				return nil, err
			}
		}
		all, err := unique(v.Value, cmp.Compare[string])
		return &types.AttributeValueMemberSS{Value: all}, err
	case *types.AttributeValueMemberNS:
		all := make([]string, len(v.Value))
		for i, s := range v.Value {
			var err error
			if all[i], err = number(s); err != nil {
				return nil, err
			}
		}
		all, err := unique(all, cmp.Compare[string])
		return &types.AttributeValueMemberNS{Value: all}, err
	case *types.AttributeValueMemberBS:
		all, err := unique(v.Value, bytes.Compare)
		return &types.AttributeValueMemberBS{Value: all}, err
	}
	return v, nil
}

func unique[E any](all []E, compare func(E, E) int) ([]E, error) {
	sorted := slices.SortedFunc(slices.Values(all), compare)
	switch {
	case len(sorted) == 0:
		return nil, errors.New("a set in it is empty")
	case len(slices.CompactFunc(slices.Clone(sorted), func(a, b E) bool { return compare(a, b) == 0 })) < len(sorted):
		return nil, errors.New("a set in it has an element twice")
	}
	return sorted, nil
}

// numeral are the texts of numbers.
var numeral = regexp.MustCompile(`^([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,6}))?$`)

// number is a number without zeros at its ends.
func number(s string) (string, error) {
	parts := numeral.FindStringSubmatch(s)
	if parts == nil || parts[2]+parts[3] == "" {
		return "", errors.New("a number in it is infinite, or none")
	}
	sign, whole, fraction := strings.TrimPrefix(parts[1], "+"), strings.TrimLeft(parts[2], "0"), parts[3]
	power, _ := strconv.Atoi(parts[4])
	all := whole + fraction
	power -= len(fraction)
	digits := strings.TrimRight(all, "0")
	power += len(all) - len(digits)
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return "0", nil
	}
	switch magnitude := power + len(digits) - 1; {
	case len(digits) > maxDigits:
		return "", fmt.Errorf("a number in it has %d digits: DynamoDB keeps %d", len(digits), maxDigits)
	case magnitude > maxMagnitude || magnitude < minMagnitude:
		return "", fmt.Errorf("a number in it has the magnitude 1e%d: DynamoDB keeps 1e%d to 1e%d", magnitude, minMagnitude, maxMagnitude)
	}
	return sign + plain(digits, power), nil
}

// plain writes digits × 10^power without an exponent.
func plain(digits string, power int) string {
	switch point := len(digits) + power; {
	case power >= 0:
		return digits + strings.Repeat("0", power)
	case point > 0:
		return digits[:point] + "." + digits[point:]
	default:
		return "0." + strings.Repeat("0", -point) + digits
	}
}
