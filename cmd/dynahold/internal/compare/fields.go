package compare

import _ "embed" // for the text

// Fields says what the JSON of a report has, as the help of a command does.
//
//go:embed fields.txt
var Fields string
