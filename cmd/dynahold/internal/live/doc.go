// Package live shows on a terminal what a look returns, again and again, on a screen
// beside the terminal's own, which is there again afterwards. It goes by Bubble Tea,
// which knows terminals: their sizes and changes of them, keys, wide characters, and
// how to leave them as they were, also after a panic.
package live
