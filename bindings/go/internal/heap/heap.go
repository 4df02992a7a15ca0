// Package heap tells the tests what C has allocated.
package heap

// #include <malloc.h>
import "C"

// InUse is the number of bytes that were allocated in C and not freed.
func InUse() int64 {
	return int64(C.mallinfo2().uordblks)
}
