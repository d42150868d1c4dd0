//go:build !linux

package local

import "os"

func setDirect(*os.File, bool) bool { return false }

func reserve(*os.File, int64) error { return nil }
