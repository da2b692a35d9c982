package repo

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// roles are those that a repo tag can give to a field.
var roles = []string{"pk", "sk", "type=NAME", "version", "eventtime", "eventid", "created", "updated", "unique"}

// role is what a repo tag says of a field.
type role struct {
	name   string        // "" without a tag
	of     string        // type=NAME: the name of the type; unique=NAME: of what several fields are together
	prefix string        // of keys: what their values begin with in the table
	unit   time.Duration // of stamps that are integers: what one step is
}

// units are what one step of a stamp can be, by the names that the tag has for them.
var units = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond}

// parseRole reads a repo tag.
func parseRole(tag string) (r role, err error) {
	if of, ok := strings.CutPrefix(tag, "type="); ok {
		if of == "" || !utf8.ValidString(of) {
			return r, fmt.Errorf("the role %q names no type: write it as in repo:\"type=invoice\"", tag)
		}
		return role{name: "type", of: of}, nil
	}
	if of, ok := strings.CutPrefix(tag, "unique="); ok {
		if of == "" || !utf8.ValidString(of) {
			return r, fmt.Errorf("the role %q names nothing: write it as in repo:\"unique=login\", on each of the fields that are unique together", tag)
		}
		return role{name: "unique", of: of}, nil
	}
	name, option, has := strings.Cut(tag, ",")
	if r.name = name; !slices.Contains(roles, name) || name == "type=NAME" {
		return r, fmt.Errorf("the unknown role repo:%q: the roles are %s", tag, strings.Join(roles, ", "))
	}
	if !has {
		return r, nil
	}
	return r, r.parseOption(tag, option)
}

// parseOption reads what stands behind the name of a role.
func (r *role) parseOption(tag, option string) error {
	key, value, _ := strings.Cut(option, "=")
	switch {
	case key == "prefix" && (r.name == "pk" || r.name == "sk"):
		if r.prefix = value; value == "" || !utf8.ValidString(value) {
			return fmt.Errorf("the role %q, whose prefix is empty: write it as in repo:\"pk,prefix=ORDER#\"", tag)
		}
	case key == "unit" && (r.name == "created" || r.name == "updated"):
		if r.unit = units[value]; r.unit == 0 {
			return fmt.Errorf("the role %q, whose unit is not one of s, ms, us and ns", tag)
		}
	default:
		return fmt.Errorf("the role %q with the unknown option %q: keys take prefix=TEXT, created and updated take unit=s, ms, us or ns", tag, option)
	}
	return nil
}
