package record

import _ "embed" // for the text

// Fields says what a record has, as the help of a command does.
//
//go:embed fields.txt
var Fields string
