package compare

import "strings"

// code is the Go expression that makes a mode.
func code(m Mode) string {
	fields := map[string]string{warm: "Warm: 1024", combine: "Combine: true", fair: "Fair: true", race: "Race: true"}
	var set []string
	for _, o := range m.options() {
		set = append(set, fields[o])
	}
	p := m.strategy()
	return p + ".New(table, " + p + ".Config{" + strings.Join(set, ", ") + "})"
}
