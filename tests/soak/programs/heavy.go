// C blocks that many goroutines take, hand on and free, with processes in between.
package main

/*
#include <stdlib.h>
#include <string.h>

static void *take(size_t size, int fill) {
  void *block = malloc(size);
  if (block == NULL) abort();
  return memset(block, fill, size);
}
static long seen(const unsigned char *block, size_t size, int fill) {
  for (size_t i = 0; i < size; ++i)
    if (block[i] != (unsigned char)fill) abort();
  return (long)size;
}
*/
import "C"

import (
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"unsafe"
)

type message struct {
	block unsafe.Pointer
	size  C.size_t
	fill  C.int
}

func main() {
	var total atomic.Int64
	var makers, takers sync.WaitGroup
	queue := make(chan message, 100)
	for i := 0; i < 200; i++ {
		makers.Add(1)
		go func(number int) {
			defer makers.Done()
			for j := 0; j < 1000; j++ {
				size := C.size_t(1 + (number*7919+j*104729)%9000)
				if j%250 == 0 {
					size *= 100
				}
				queue <- message{C.take(size, C.int(number)), size, C.int(number)}
			}
			if number%20 == 0 && exec.Command("true").Run() != nil {
				panic("true fails")
			}
		}(i)
	}
	for i := 0; i < 50; i++ {
		takers.Add(1)
		go func() {
			defer takers.Done()
			for m := range queue {
				total.Add(int64(C.seen((*C.uchar)(m.block), m.size, m.fill)))
				C.free(m.block)
			}
		}()
	}
	makers.Wait()
	close(queue)
	takers.Wait()
	fmt.Println("bytes", total.Load())
}
