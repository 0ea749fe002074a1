/* Terraform as a program: opens the library that it was built as and passes its arguments on. */
#include <dlfcn.h>
#include <stdio.h>

typedef long (*run_function)(long count, char **arguments, long standard_output, long standard_error);

int main(int count, char **arguments) {
    void *library = dlopen(LIBRARY, RTLD_NOW);
    run_function run = library ? (run_function)dlsym(library, "RunCli") : NULL;
    if (run == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 127;
    }
    return (int)run(count - 1, arguments + 1, 1, 2);
}
