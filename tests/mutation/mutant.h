/* Every source of the copy sees this. MUTANT in the environment says which fault is in force. */
extern int hf__mutant;
/* A byte for each mutant, while it is found out which tests get there. */
extern unsigned char *hf__reached;

static inline int mutant_is(int number)
{
    if (hf__reached)
        hf__reached[number] = 1;
    return number == hf__mutant;
}
