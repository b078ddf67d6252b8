/* Two of these differ in nothing but the length of a frame, so one may be loaded where the other was. */
void* call_from_a_frame(void* (*call)(void*), void* argument) {
  char frame[HM_FRAME];
  __asm__ volatile("" : : "r"(frame) : "memory");
  void* result = call(argument);
  __asm__ volatile("" : : "r"(frame) : "memory");
  return result;
}
