/* The smallest program: what any measurement finds beyond it is the measurer's. */
int main(void) { return 0; }
