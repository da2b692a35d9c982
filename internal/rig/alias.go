package rig

import (
	"fmt"
	"net/http"
	"regexp"

	"github.com/dynahold/dynahold/internal/fault"
)

// Alias is a name of a table that one process of many knows it by. What a process keeps
// for all that it does with a table is then not shared by those that a test plays.
func Alias(table string, process int) string { return fmt.Sprintf("%s.%d", table, process) }

// Aliased is the network to a table that has such names.
func Aliased(table string, next fault.Doer) fault.Doer {
	return aliased{regexp.MustCompile(regexp.QuoteMeta(table) + `\.[0-9]+`), []byte(table), next}
}

type aliased struct {
	names *regexp.Regexp
	table []byte
	next  fault.Doer
}

// Do implements the SDK's HTTP client.
func (a aliased) Do(req *http.Request) (*http.Response, error) {
	body, err := fault.Body(req)
	if err != nil {
		return nil, err
	}
	fault.SetBody(req, a.names.ReplaceAll(body, a.table))
	return a.next.Do(req)
}
